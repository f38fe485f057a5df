/* A library that says who has loaded it, as soon as it is loaded: ALTAIR_TEST_SAY is a port and a text. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

__attribute__((constructor)) static void say(void)
{
	const char *what = getenv("ALTAIR_TEST_SAY");
	if (what == NULL) {
		return;
	}
	char *text;
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons((unsigned short) strtol(what, &text, 10)),
		.sin_addr = { htonl(INADDR_LOOPBACK) },
	};
	int connection = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(connection, (struct sockaddr *) &address, sizeof address) == 0) {
		(void) !write(connection, text + 1, strlen(text + 1));
	}
	close(connection);
}
