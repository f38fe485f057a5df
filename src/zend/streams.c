/* PHP's streams, as a command reads them from its standard input. All but altair_stream_of() and
 * altair_stream_descriptor() may run PHP code, that of a wrapper or a filter, and so may bail out. */

#include "shim.h"
#include "php_network.h"
#include "php_streams.h"

void *altair_stream_of(zval *value)
{
	return Z_TYPE_P(value) == IS_RESOURCE
		? zend_fetch_resource2(Z_RES_P(value), NULL, php_file_le_stream(), php_file_le_pstream())
		: NULL;
}

int altair_stream_descriptor(void *stream)
{
	php_socket_t descriptor;
	/* Something that was read already, or a filter, is not in the descriptor. */
	if (((php_stream *) stream)->readfilters.head != NULL
		|| ((php_stream *) stream)->writepos > ((php_stream *) stream)->readpos) {
		return -1;
	}
	if (php_stream_cast((php_stream *) stream, PHP_STREAM_AS_FD_FOR_SELECT | PHP_STREAM_CAST_INTERNAL,
			(void *) &descriptor, 0) == SUCCESS) {
		return (int) descriptor;
	}
	return -1;
}

ssize_t altair_stream_read(void *stream, char *to, size_t most)
{
	return php_stream_read((php_stream *) stream, to, most);
}

bool altair_stream_is_over(void *stream)
{
	return php_stream_eof((php_stream *) stream);
}
