# curl 7.88 ignores CURL_SOCKOPT_ALREADY_CONNECTED: it connects the socket again, which fails (fixed in 8.0).
/^static CURLcode cf_tcp_connect/,/^}/{
/result = cf_socket_open(cf, data);/,/goto out;/{
/goto out;/a\
    if(cf->connected) {\
      *done = TRUE;\
      return CURLE_OK;\
    }
}
}
