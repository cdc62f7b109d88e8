# Names are bytes here. Without the normalization of Unicode, its code and tables (32 KB in agentd) are not linked.
/^setup_converter(/,/^}/s/archive_string_normalize_[CD])/archive_string_append_unicode)/
