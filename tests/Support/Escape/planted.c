/*
 * A library that runs as soon as it is loaded: it says so and stops, so that the process can be looked at.
 */
#include <signal.h>
#include <unistd.h>

__attribute__((constructor)) static void planted(void)
{
    if (write(1, "\001escaped\002", 9) == 9) {
        kill(getpid(), SIGSTOP);
    }
}
