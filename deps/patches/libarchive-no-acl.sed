# Access control lists and extended attributes are not carried; their code is 9 KB in agentd.
/^\(pax_attribute_acl\|pax_attribute_xattr\|add_pax_acl\|archive_write_pax_header_xattrs\)(/,/^{/s/^{/{\n	return (0); \/* ARCHIVE_OK *\//
