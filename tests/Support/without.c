/*
 * Executes a command on a system that lacks what this takes away:
 *
 *   without [mounts] [unshare] [pivot] [landlock] [landlock=<version>] [seccomp] [listener] [copies] [dispatch]
 *     [user=<uid>] [capability] [capabilities] [privileges] [filter] [landlocked] [traced] -- command...
 *
 *   mounts      unshare(2), mount(2) and their kind fail with EPERM, as in a container's default profile
 *   unshare     unshare(2) alone fails with EPERM
 *   pivot       pivot_root(2) alone fails with EPERM, as under such a profile with every capability
 *   landlock    there is no Landlock (ENOSYS)
 *   landlock=N  the kernel says that it has version N of Landlock
 *   seccomp     no further filter can be installed (EINVAL)
 *   listener    a filter cannot have a listener: there is one already (EBUSY)
 *   copies      nobody may copy descriptors of other processes or read their memory by the calls for it, and root has no
 *               right to inspect other users' (CAP_SYS_PTRACE), as in a container's default profile
 *   dispatch    there is no Syscall User Dispatch (EINVAL), as before Linux 5.11
 *   capability  not even root may mount: CAP_SYS_ADMIN is dropped for good
 *   capabilities   the same for all of them, as with --cap-drop ALL; root has its own group alone
 *   privileges  no program that is executed gives any (no_new_privs)
 *   filter      nothing, but there is a further filter, which allows all
 *   landlocked  no character device can be made, by Landlock
 *   traced      nothing, but a tracer sees each signal
 *   user=N      as user and group N, without others
 */
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CAP_SYS_PTRACE 19
#define CAP_SYS_ADMIN 21
#define LENGTH(array) (sizeof(array) / sizeof *(array))

static void fail(const char *what)
{
	perror(what);
	exit(125);
}

static struct sock_filter program[128];
static unsigned short length;

static void add(unsigned short code, unsigned char yes, unsigned char no, unsigned int value)
{
	program[length++] = (struct sock_filter) { code, yes, no, value };
}

static void answer(int call, unsigned int with)
{
	add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (unsigned int) call);
	add(BPF_RET | BPF_K, 0, 0, with);
}

static void begin(void)
{
	length = 0;
	add(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
}

static int install(unsigned int flags)
{
	add(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
	struct sock_fprog filter = { length, program };
	int fd = (int) syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter);
	if (fd < 0) {
		fail("seccomp");
	}
	return fd;
}

/* Tells a version of Landlock, for as long as the command runs. */
static int serve(int listener, pid_t command, unsigned int version)
{
	struct pollfd watched[] = {
		{ .fd = listener, .events = POLLIN },
		{ .fd = (int) syscall(SYS_pidfd_open, command, 0), .events = POLLIN },
	};
	while (watched[1].fd >= 0) {
		struct seccomp_notif call;
		struct seccomp_notif_resp with;
		int status;
		if (poll(watched, LENGTH(watched), -1) < 0) {
			fail("poll");
		}
		if (watched[1].revents && waitpid(command, &status, 0) == command) {
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		}
		memset(&call, 0, sizeof call);
		memset(&with, 0, sizeof with);
		if (!(watched[0].revents & POLLIN) || ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) {
			continue;
		}
		with.id = call.id;
		if (call.data.args[2] == LANDLOCK_CREATE_RULESET_VERSION) {
			with.val = version;
		} else {
			with.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		}
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &with);
	}
	fail("pidfd");
	return 125;
}

/* By Landlock, which root needs no no_new_privs for. */
static void confine(void)
{
	struct landlock_ruleset_attr handled = { .handled_access_fs = LANDLOCK_ACCESS_FS_MAKE_CHAR };
	int ruleset = (int) syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0);
	if (ruleset < 0 || syscall(SYS_landlock_restrict_self, ruleset, 0) != 0) {
		fail("landlock");
	}
	close(ruleset);
}

/* Traces the command, which is a child, to its end. */
static int trace(pid_t command)
{
	int status;
	while (waitpid(command, &status, 0) == command) {
		if (!WIFSTOPPED(status)) {
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		}
		/* That it executes something it is told by a signal. */
		long sent = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
		ptrace(PTRACE_CONT, command, NULL, (void *) sent);
	}
	fail("wait");
	return 125;
}

int main(int argc, char **argv)
{
	static const int mounts[] = {
		SYS_unshare, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_setns, SYS_open_tree, SYS_move_mount,
		SYS_fsopen, SYS_fsmount, SYS_mount_setattr,
	};
	static const int copies[] = { SYS_pidfd_getfd, SYS_process_vm_readv, SYS_process_vm_writev };
	static const int landlock[] = {
		SYS_landlock_create_ruleset, SYS_landlock_add_rule, SYS_landlock_restrict_self,
	};
	unsigned int version = 0, user = 0;
	int at = 1, no_filters = 0, listener = -1, filtered = 0, further = 0, traced = 0;
	if (geteuid() != 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
		fail("no_new_privs");
	}
	begin();
	for (; at < argc && strcmp(argv[at], "--") != 0; at++) {
		if (strcmp(argv[at], "mounts") == 0) {
			for (size_t i = 0; i < LENGTH(mounts); i++) {
				answer(mounts[i], SECCOMP_RET_ERRNO | EPERM);
			}
			filtered = 1;
		} else if (strcmp(argv[at], "unshare") == 0) {
			answer(SYS_unshare, SECCOMP_RET_ERRNO | EPERM);
			filtered = 1;
		} else if (strcmp(argv[at], "pivot") == 0) {
			answer(SYS_pivot_root, SECCOMP_RET_ERRNO | EPERM);
			filtered = 1;
		} else if (strcmp(argv[at], "copies") == 0) {
			for (size_t i = 0; i < LENGTH(copies); i++) {
				answer(copies[i], SECCOMP_RET_ERRNO | EPERM);
			}
			filtered = 1;
			if (geteuid() == 0 && prctl(PR_CAPBSET_DROP, CAP_SYS_PTRACE, 0, 0, 0) != 0) {
				fail("bounding set");
			}
		} else if (strcmp(argv[at], "landlock") == 0) {
			for (size_t i = 0; i < LENGTH(landlock); i++) {
				answer(landlock[i], SECCOMP_RET_ERRNO | ENOSYS);
			}
			filtered = 1;
		} else if (strcmp(argv[at], "dispatch") == 0) {
			add(BPF_JMP | BPF_JEQ | BPF_K, 0, 4, SYS_prctl);
			add(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, args[0]));
			add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, PR_SET_SYSCALL_USER_DISPATCH);
			add(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EINVAL);
			add(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
			filtered = 1;
		} else if (sscanf(argv[at], "landlock=%u", &version) == 1) {
		} else if (strcmp(argv[at], "seccomp") == 0) {
			no_filters = 1;
		} else if (strcmp(argv[at], "listener") == 0) {
			version = version ? version : 7;
		} else if (strcmp(argv[at], "privileges") == 0) {
			if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
				fail("no_new_privs");
			}
		} else if (strcmp(argv[at], "filter") == 0) {
			further = 1;
		} else if (strcmp(argv[at], "landlocked") == 0) {
			confine();
		} else if (strcmp(argv[at], "traced") == 0) {
			traced = 1;
		} else if (strcmp(argv[at], "capability") == 0) {
			if (prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0) != 0) {
				fail("bounding set");
			}
		} else if (strcmp(argv[at], "capabilities") == 0) {
			static const gid_t own = 0;
			if (setgroups(1, &own) != 0) {
				fail("groups");
			}
			for (unsigned long one = 0; prctl(PR_CAPBSET_READ, one, 0, 0, 0) >= 0; one++) {
				if (prctl(PR_CAPBSET_DROP, one, 0, 0, 0) != 0) {
					fail("bounding set");
				}
			}
		} else if (sscanf(argv[at], "user=%u", &user) != 1) {
			fprintf(stderr, "without: what is %s?\n", argv[at]);
			return 125;
		}
	}
	if (at + 1 >= argc) {
		fprintf(stderr, "without: no command\n");
		return 125;
	}
	if (filtered) {
		install(0);
	}
	if (version != 0) {
		begin();
		answer(SYS_landlock_create_ruleset, SECCOMP_RET_USER_NOTIF);
		listener = install(SECCOMP_FILTER_FLAG_NEW_LISTENER);
	}
	if (no_filters) {
		begin();
		answer(SYS_seccomp, SECCOMP_RET_ERRNO | EINVAL);
		/* prctl(PR_SET_SECCOMP) would be another way. */
		add(BPF_JMP | BPF_JEQ | BPF_K, 0, 3, SYS_prctl);
		add(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, args[0]));
		add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, PR_SET_SECCOMP);
		add(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EINVAL);
		install(0);
	}
	if (further) {
		begin();
		install(0);
	}
	if (user != 0 && (setgroups(0, NULL) != 0 || setresgid(user, user, user) != 0 || setresuid(user, user, user) != 0)) {
		fail("user");
	}
	if (traced) {
		pid_t command = fork();
		if (command != 0) {
			return trace(command);
		}
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) {
			fail("trace");
		}
	}
	if (listener < 0) {
		execvp(argv[at + 1], argv + at + 1);
		fail(argv[at + 1]);
	}
	pid_t command = fork();
	if (command == 0) {
		close(listener);
		execvp(argv[at + 1], argv + at + 1);
		fail(argv[at + 1]);
	}
	return serve(listener, command, version);
}
