# curl 7.88 never says what a BearSSL handshake waits for, so it polls no descriptor and every new
# connection loses up to 1.2 s. Tell it, where the send or receive below would block.
/^static CURLcode bearssl_run_until/,/^}/{
/Curl_conn_cf_send(cf->next/a\
      if(ret < 0 && result == CURLE_AGAIN && connssl->state != ssl_connection_complete)\
        connssl->connecting_state = ssl_connect_2_writing;
/Curl_conn_cf_recv(cf->next/a\
      if(ret < 0 && result == CURLE_AGAIN && connssl->state != ssl_connection_complete)\
        connssl->connecting_state = ssl_connect_2_reading;
}
