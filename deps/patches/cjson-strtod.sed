# The one use of scanf in our guest programs (4 KB in each), where strtod is linked anyway.
s/if ((sscanf((char\*)number_buffer, "%lg", &test) != 1) || /test = strtod((char*)number_buffer, NULL);\n        if (/
