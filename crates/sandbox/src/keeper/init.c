/*
 * The keeper of a command as a program of its own: the first process of the command's pid
 * namespace ("init"). keeper.rs prepares everything, makes the process, and executes this in its
 * own place, so that no keeper holds the host's memory and its making copies none.
 *
 * It does what keeper.rs does for a command (see there for the protocol): it reports the start,
 * passes signals on, collects orphans, and ends everything when the process ends, when the host
 * requests it, or when the host is gone. When it ends, the kernel ends what is left in the
 * namespace (pid_namespaces(7)).
 *
 * It uses no C library: executing it takes as little time as possible.
 */
#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/signalfd.h>
#include <linux/time_types.h>
#include <linux/wait.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Descriptors that it is executed with (keeper/init.rs). */
enum {
	LIFELINE = 3,
	/* A pidfd of the host. May be missing. */
	HOST = 7,
	/* Reads a failed step, or the end of file once the process has become its program. */
	START = 8,
	/* One byte lets the process execute its program. */
	GATE = 9,
	/* What is here and above belongs to the host. */
	NOT_OURS = 10,
};

/* The id of the process: the first that was made in the namespace after this one. */
#define PROCESS 2
/* linux/errno.h, which user space cannot include alone. */
#define OUR_EINTR 4
#define OUR_EAGAIN 11
/* bits/socket.h */
#define OUR_MSG_TRUNC 0x20
#define OUR_MSG_DONTWAIT 0x40
#define OUR_MSG_NOSIGNAL 0x4000
/* error.rs, `Step::Keeper` */
#define STEP_KEEPER 1
/* The same as in kill_descendants.rs. */
#define SWEEP_LIMIT_S 3
#define ROUND_NS 10000000L

#define NOT_STARTED 127

static long call(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
	long result;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;
	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
#else
#error "no system calls for this architecture"
#endif
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tand $-16, %rsp\n\tcall run\n\thlt\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n_start:\n\tmov x29, #0\n\tmov x30, #0\n\tb run\n");
#endif

static _Noreturn void end(int code)
{
	for (;;)
		call(__NR_exit_group, code, 0, 0, 0, 0, 0);
}

static bool is_open(int fd)
{
	return call(__NR_fcntl, fd, F_GETFD, 0, 0, 0, 0) >= 0;
}

static void close_one(int fd)
{
	call(__NR_close, fd, 0, 0, 0, 0, 0);
}

/* The number in a name; -1 for another name. */
static int number_in(const char *name)
{
	int number = 0;
	for (; *name; name++) {
		if (*name < '0' || *name > '9')
			return -1;
		number = number * 10 + (*name - '0');
	}
	return number;
}

/* Closes what /proc lists. Returns whether it was something: the list changes meanwhile. */
static bool close_listed(int first)
{
	/* getdents(2) */
	struct entry {
		uint64_t inode, offset;
		uint16_t length;
		uint8_t type;
		char name[];
	};
	_Alignas(struct entry) char room[1024];
	bool closed = false;
	int list = (int)call(__NR_openat, AT_FDCWD, (long)"/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, 0, 0);
	long length;
	while (list >= 0 && (length = call(__NR_getdents64, list, (long)room, sizeof room, 0, 0, 0)) > 0) {
		for (long at = 0; at < length;) {
			const struct entry *entry = (const struct entry *)(room + at);
			int fd = number_in(entry->name);
			if (fd >= first && fd != list) {
				close_one(fd);
				closed = true;
			}
			at += entry->length;
		}
	}
	if (list >= 0)
		close_one(list);
	return closed;
}

/* close_range(2) is there since Linux 5.9; container profiles may refuse it. */
static void close_from(int first)
{
	if (call(__NR_close_range, first, ~0U, 0, 0, 0, 0) != 0)
		while (close_listed(first))
			;
}

static void send_packet(const void *bytes, size_t length)
{
	call(__NR_sendto, LIFELINE, (long)bytes, (long)length, OUR_MSG_DONTWAIT | OUR_MSG_NOSIGNAL, 0, 0);
}

/* Collects one child that has ended; its id, 0 if none has, negative without any child. */
static long reap(int *status)
{
	return call(__NR_wait4, -1, (long)status, WNOHANG | __WALL, 0, 0, 0);
}

static long seconds(void)
{
	struct __kernel_timespec now = { 0, 0 };
	call(__NR_clock_gettime, 1 /* CLOCK_MONOTONIC */, (long)&now, 0, 0, 0, 0);
	return (long)now.tv_sec;
}

static void wait_for(struct pollfd *fds, unsigned count, const struct __kernel_timespec *patience)
{
	/* The call writes the time that is left. */
	struct __kernel_timespec left = patience ? *patience : (struct __kernel_timespec){ 0, 0 };
	call(__NR_ppoll, (long)fds, count, patience ? (long)&left : 0, 0, 0, 0);
}

static bool next_signal(int signals, uint32_t *number)
{
	struct signalfd_siginfo info;
	if (call(__NR_read, signals, (long)&info, sizeof info, 0, 0, 0) != (long)sizeof info)
		return false;
	*number = info.ssi_signo;
	return true;
}

struct keeper {
	int signals;
	/* The raw wait status of the process, once it has ended. */
	int status;
	bool has_status;
	/* The process has not yet become its program. */
	bool starting;
	/* Everything must end. */
	bool ending;
	bool has_host;
};

static void take_signals(struct keeper *keeper)
{
	uint32_t number;
	while (next_signal(keeper->signals, &number))
		if (number == 15 /* SIGTERM */)
			keeper->ending = true;
	int status;
	long pid;
	while ((pid = reap(&status)) > 0) {
		if (pid == PROCESS) {
			keeper->status = status;
			keeper->has_status = true;
		}
	}
}

/* Forwards a failed step; otherwise reports the id of the process (error.rs, `encode`). */
static void report_start(struct keeper *keeper)
{
	int32_t report[2] = { 0, PROCESS };
	int32_t failed[2];
	long count = call(__NR_read, START, (long)failed, sizeof failed, 0, 0, 0);
	if (count == (long)sizeof failed) {
		report[0] = failed[0];
		report[1] = failed[1];
	}
	/* A process that has ended reported before if a step failed; the host may still hold an end of
	   the pipe then. A process that is yet to be ended has not started. */
	if (count >= 0 || keeper->has_status)
		send_packet(report, sizeof report);
	close_one(START);
	keeper->starting = false;
}

/* Passes a signal on to the process's group; a host that has closed its end ends everything. */
static void obey(struct keeper *keeper)
{
	uint8_t number = 0;
	/* With the whole length of the packet. */
	int flags = OUR_MSG_DONTWAIT | OUR_MSG_TRUNC;
	long count = call(__NR_recvfrom, LIFELINE, (long)&number, 1, flags, 0, 0);
	if (count == 1) {
		/* Only this process collects it, so until then its id is not reused. */
		if (!keeper->has_status)
			call(__NR_kill, -PROCESS, number, 0, 0, 0, 0);
	} else if (count != -OUR_EAGAIN && count != -OUR_EINTR) {
		keeper->ending = true;
	}
}

static void round(struct keeper *keeper)
{
	/* Negative descriptors are ignored. */
	struct pollfd fds[4] = {
		{ keeper->signals, POLLIN, 0 },
		{ LIFELINE, POLLIN, 0 },
		{ keeper->has_host ? HOST : -1, POLLIN, 0 },
		{ keeper->starting ? START : -1, POLLIN, 0 },
	};
	wait_for(fds, 4, NULL);
	if (fds[3].revents)
		report_start(keeper);
	if (fds[0].revents)
		take_signals(keeper);
	if (fds[1].revents)
		obey(keeper);
	if (fds[2].revents)
		keeper->ending = true;
}

/* Kills and collects everything else in the namespace. Returns whether nothing is left. */
static bool sweep(struct keeper *keeper)
{
	long until = seconds() + SWEEP_LIMIT_S;
	/* Most commands leave nothing behind. */
	while (seconds() < until) {
		bool progress = false;
		for (;;) {
			int status;
			long pid = reap(&status);
			if (pid < 0)
				return true;
			if (pid == 0)
				break;
			progress = true;
			if (pid == PROCESS) {
				keeper->status = status;
				keeper->has_status = true;
			}
		}
		call(__NR_kill, -1, 9 /* SIGKILL */, 0, 0, 0, 0);
		if (!progress) {
			struct pollfd fds = { keeper->signals, POLLIN, 0 };
			struct __kernel_timespec patience = { 0, ROUND_NS };
			uint32_t number;
			wait_for(&fds, 1, &patience);
			while (next_signal(keeper->signals, &number))
				;
		}
	}
	return false;
}

/* The last packet (keeper.rs, `Verdict`). */
static void send_verdict(int status)
{
	uint8_t packet[5] = { 'V' };
	const uint8_t *bytes = (const uint8_t *)&status;
	for (int i = 0; i < 4; i++)
		packet[i + 1] = bytes[i];
	send_packet(packet, sizeof packet);
}

/* Ends everything, after a call of its own that has failed with this result. */
static _Noreturn void fail(long result)
{
	int32_t failed[2] = { STEP_KEEPER, (int32_t)-result };
	send_packet(failed, sizeof failed);
	end(NOT_STARTED);
}

__attribute__((used)) static _Noreturn void run(void)
{
	/* A trial: whether this machine executes it at all. */
	if (!is_open(LIFELINE))
		end(0);
	/* The command may run as the same user, and must neither read nor change this process. */
	long refused = call(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0, 0);
	if (refused != 0)
		fail(refused);
	call(__NR_prctl, PR_SET_NAME, (long)"altair-keeper", 0, 0, 0, 0);
	/* As in keeper.rs; executing a program may have cleared it. */
	call(__NR_prctl, PR_SET_PDEATHSIG, 18 /* SIGCONT */, 0, 0, 0, 0);
	close_from(NOT_OURS);
	/* So that the host's directory can be unmounted. */
	call(__NR_chdir, (long)"/", 0, 0, 0, 0, 0);
	uint64_t all = ~(uint64_t)0;
	struct keeper keeper = { .starting = true, .has_host = is_open(HOST) };
	keeper.signals = (int)call(__NR_signalfd4, -1, (long)&all, sizeof all, SFD_CLOEXEC | SFD_NONBLOCK, 0, 0);
	if (keeper.signals < 0)
		fail(keeper.signals);
	/* A process that has failed and ended does not read it. Why is in START. */
	call(__NR_write, GATE, (long)"", 1, 0, 0, 0);
	close_one(GATE);

	while (!keeper.has_status && !keeper.ending)
		round(&keeper);
	if (keeper.starting)
		report_start(&keeper);
	if (sweep(&keeper) && keeper.has_status)
		send_verdict(keeper.status);
	end(0);
}
