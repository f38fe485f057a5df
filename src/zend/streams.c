/* PHP's streams, as a command reads them from its standard input. All but altair_stream_of() and
 * altair_stream_descriptor() may run PHP code, that of a wrapper or a filter, and so may bail out. */

#include "shim.h"
#include "php_network.h"
#include "php_streams.h"

void *altair_stream_of(zval *value)
{
	php_stream *stream = Z_TYPE_P(value) == IS_RESOURCE
		? zend_fetch_resource2(Z_RES_P(value), NULL, php_file_le_stream(), php_file_le_pstream())
		: NULL;
	/* What opendir() opens gives entries, no bytes. */
	return stream && !(stream->flags & PHP_STREAM_FLAG_IS_DIR) ? stream : NULL;
}

static size_t buffered(const php_stream *stream)
{
	return stream->writepos > stream->readpos ? (size_t) (stream->writepos - stream->readpos) : 0;
}

int altair_stream_descriptor(void *handle)
{
	php_stream *stream = handle;
	php_socket_t descriptor;
	/* Something that was read already is not in the descriptor. PHP warns where the class of a wrapper has no
	 * stream_cast(), which none needs to be read. */
	if (buffered(stream) > 0 || php_stream_is(stream, PHP_STREAM_IS_USERSPACE)) {
		return -1;
	}
	if (php_stream_cast(stream, PHP_STREAM_AS_FD_FOR_SELECT | PHP_STREAM_CAST_INTERNAL,
			(void *) &descriptor, 0) == SUCCESS) {
		return (int) descriptor;
	}
	return -1;
}

ssize_t altair_stream_read(void *handle, char *to, size_t most)
{
	php_stream *stream = handle;
	/* After what it has in its buffer, PHP would wait for more. */
	size_t ready = buffered(stream);
	return php_stream_read(stream, to, ready > 0 && ready < most ? ready : most);
}

bool altair_stream_is_over(void *stream)
{
	return php_stream_eof((php_stream *) stream);
}
