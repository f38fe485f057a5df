/* MySQL: the statements that we send in a session ourselves. */

#include "database_mysqlnd.h"

#ifdef ALTAIR_HAS_MYSQLND

bool altair_mysqlnd_send_own(MYSQLND_CONN_DATA *conn, const char *text, size_t len)
{
	MYSQLND_PFC_DATA *frames = conn->protocol_frame_codec->data;
	zend_uchar number = frames->packet_no;
	zend_uchar envelope = frames->compressed_envelope_packet_no;
	MYSQLND_CONNECTION_STATE ready = conn->state;
	MYSQLND_UPSERT_STATUS unused = *conn->upsert_status;
	ready.state = CONN_READY;
	bool is_sent = altair_mysqlnd_next.protocol.send_command(conn->payload_decoder_factory, COM_QUERY,
		(const zend_uchar *) text, len, false, &ready, conn->error_info, &unused, conn->stats, conn->m->send_close,
		conn) == PASS;
	if (!is_sent) {
		conn->state.state = ready.state;
	}
	/* The client continues where it was. */
	frames->packet_no = number;
	frames->compressed_envelope_packet_no = envelope;
	set(conn, IS_PENDING, is_sent);
	return is_sent;
}

bool altair_mysqlnd_settle(MYSQLND_CONN_DATA *conn)
{
	if (!is(conn, IS_PENDING)) {
		return true;
	}
	set(conn, IS_PENDING, false);
	MYSQLND_PFC_DATA *frames = conn->protocol_frame_codec->data;
	MYSQLND_PROTOCOL_PAYLOAD_DECODER_FACTORY *protocol = conn->payload_decoder_factory;
	MYSQLND_UPSERT_STATUS unused = *conn->upsert_status;
	MYSQLND_STRING message = {NULL, 0};
	frames->packet_no = 1;
	frames->compressed_envelope_packet_no = 1;
	bool is_fine = protocol->m.send_command_handle_response(
		protocol, PROT_OK_PACKET, true, COM_QUERY, true, conn->error_info, &unused, &message) == PASS;
	/* If it failed, the session is set up again before anything else. */
	set(conn, IS_BROKEN, !is_fine || is(conn, IS_BROKEN));
	return is_fine;
}

bool altair_mysqlnd_say(MYSQLND_CONN_DATA *conn, const char *text)
{
	return altair_mysqlnd_send_own(conn, text, strlen(text)) && altair_mysqlnd_settle(conn);
}

#endif
