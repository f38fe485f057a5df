/* Attacks on what is outside of a sandbox, one for each name. Whether one has succeeded is looked at from outside; what
   it prints is for the reader of a failed test, and for secrets, which must not come out. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/fscrypt.h>
#include <linux/seccomp.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static long said(const char *what, long result) {
    int error = result < 0 ? errno : 0;
    printf("%s: %ld %s\n", what, result, error ? strerrorname_np(error) : "");
    fflush(stdout);
    errno = error;
    return result;
}

static void dump(const char *path) {
    char buffer[65536];
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        said(path, fd);
        return;
    }
    ssize_t count;
    while ((count = read(fd, buffer, sizeof buffer)) > 0)
        fwrite(buffer, 1, (size_t) count, stdout);
    close(fd);
    puts("");
    fflush(stdout);
}

/* Says that it is where it is to be looked at, and waits until its standard input is closed. */
static int stay(void) {
    char byte;
    puts("ready");
    fflush(stdout);
    while (read(0, &byte, 1) > 0 || errno == EINTR)
        errno = 0;
    return 0;
}

static void put(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (said(path, fd) >= 0) {
        said("write", write(fd, text, strlen(text)));
        close(fd);
    }
}

/* --- Other processes ------------------------------------------------------------------------ */

static void rummage_in(const char *pid) {
    static const char *files[] = {"cmdline", "environ", "mountinfo", "maps", "cgroup", "root/etc/hostname", 0};
    char path[512], link[512];
    for (int i = 0; files[i]; i++) {
        snprintf(path, sizeof path, "/proc/%s/%s", pid, files[i]);
        dump(path);
    }
    snprintf(path, sizeof path, "/proc/%s/fd", pid);
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        snprintf(path, sizeof path, "/proc/%.20s/fd/%.20s", pid, entry->d_name);
        ssize_t length = readlink(path, link, sizeof link);
        if (length > 0)
            printf("%s -> %.*s\n", path, (int) length, link);
    }
    if (dir)
        closedir(dir);
}

/* All that /proc tells of processes that are not its own. */
static int rummage(char **argv) {
    (void) argv;
    char own[16];
    snprintf(own, sizeof own, "%d", getpid());
    rummage_in("1");
    DIR *dir = opendir("/proc");
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9' && strcmp(entry->d_name, own) != 0)
            rummage_in(entry->d_name);
    return 0;
}

static int memory(char **argv) {
    pid_t pid = atoi(argv[0]);
    unsigned long address = strtoul(argv[1], 0, 0);
    char buffer[4096] = {0}, path[64];
    struct iovec own = {buffer, sizeof buffer}, other = {(void *) address, sizeof buffer};
    if (said("process_vm_readv", process_vm_readv(pid, &own, 1, &other, 1, 0)) > 0)
        fwrite(buffer, 1, sizeof buffer, stdout);
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    int fd = open(path, O_RDONLY);
    if (said(path, fd) >= 0 && said("pread", pread(fd, buffer, sizeof buffer, (off_t) address)) > 0)
        fwrite(buffer, 1, sizeof buffer, stdout);
    if (said("ptrace", ptrace(PTRACE_ATTACH, pid, 0, 0)) == 0) {
        waitpid(pid, 0, __WALL);
        for (unsigned long at = 0; at < sizeof buffer; at += sizeof(long)) {
            long word = ptrace(PTRACE_PEEKDATA, pid, address + at, 0);
            memcpy(buffer + at, &word, sizeof word);
        }
        fwrite(buffer, 1, sizeof buffer, stdout);
        ptrace(PTRACE_DETACH, pid, 0, 0);
    }
    return 0;
}

static int change(char **argv) {
    pid_t pid = atoi(argv[0]);
    struct rlimit limit = {77, 77};
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    struct sched_param none = {0};
    said("prlimit", prlimit(pid, RLIMIT_NOFILE, &limit, 0));
    said("sched_setaffinity", sched_setaffinity(pid, sizeof one, &one));
    said("sched_setscheduler", sched_setscheduler(pid, SCHED_BATCH, &none));
    said("setpriority", setpriority(PRIO_PROCESS, (id_t) pid, 7));
    return 0;
}

static int take_descriptor(char **argv) {
    char buffer[4096];
    long pidfd = said("pidfd_open", syscall(SYS_pidfd_open, atoi(argv[0]), 0));
    long fd = said("pidfd_getfd", syscall(SYS_pidfd_getfd, pidfd, atoi(argv[1]), 0));
    ssize_t count = pread((int) fd, buffer, sizeof buffer, 0);
    if (said("pread", count) > 0)
        fwrite(buffer, 1, (size_t) count, stdout);
    return 0;
}

static void deaf(void) {
    for (int number = 1; number < 65; number++)
        signal(number, SIG_IGN);
}

/* Hides from its session, its parent and every signal that can be ignored. The mark is in its arguments. */
static int hide(char **argv) {
    (void) argv;
    if (fork() > 0)
        return 0;
    setsid();
    deaf();
    prctl(PR_SET_PDEATHSIG, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (fork() > 0) {
        for (int fd = 0; fd < 64; fd++)
            close(fd);
        for (;;)
            pause();
    }
    setsid();
    for (int fd = 0; fd < 64; fd++)
        close(fd);
    for (;;)
        pause();
}

/* Processes that are gone before anybody can kill them: each lives for as long as it takes to make the next. They stop
   after some seconds by themselves. */
static int run_away(char **argv) {
    int chains = atoi(argv[1]);
    unsigned pause_us = (unsigned) atoi(argv[2]);
    time_t end = time(0) + 4;
    // Locked for as long as one of them is there.
    int lock = open("lock", O_RDWR | O_CREAT, 0666);
    flock(lock, LOCK_EX);
    dup2(lock, 100);
    deaf();
    signal(SIGCHLD, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, 0);
    for (int chain = 0; chain < chains; chain++) {
        if (fork() != 0)
            continue;
        setsid();
        for (int fd = 0; fd < 64; fd++)
            close(fd);
        while (time(0) < end)
            if (usleep(pause_us), fork() > 0)
                _exit(0);
        _exit(0);
    }
    return 0;
}

/* As many processes as it can have. */
static int multiply(char **argv) {
    long made = 0, most = atol(argv[1]);
    pid_t pid = 1;
    setpgid(0, 0);
    while (made < most && (pid = fork()) > 0)
        made++;
    if (made < most && pid == 0)
        for (;;)
            pause();
    said("fork", made);
    stay();
    kill(0, SIGKILL);
    return 0;
}

/* As many by processes that end while they are counted, so that their children move to another parent. */
static int shuffle(char **argv) {
    int most = atoi(argv[1]);
    signal(SIGCHLD, SIG_IGN);
    for (int wave = 0; wave < most / 100; wave++) {
        pid_t leader = fork();
        if (leader != 0)
            continue;
        pid_t pid = 1;
        int made = 0;
        while (made < 100 && (pid = fork()) > 0)
            made++;
        if (made < 100 && pid == 0)
            for (;;)
                pause();
        _exit(0);
    }
    for (int tries = 0, made = 0; made < most && tries < 2 * most; tries++) {
        pid_t pid = fork();
        if (pid == 0)
            for (;;)
                pause();
        made += pid > 0;
    }
    return stay();
}

static void *idle(void *none) {
    for (;;)
        pause();
    return none;
}

static int threads(char **argv) {
    long most = atol(argv[1]);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 16384);
    long made = 0;
    pthread_t thread;
    while (made < most && pthread_create(&thread, &small, idle, 0) == 0)
        made++;
    said("threads", made);
    return stay();
}

/* --- Signals -------------------------------------------------------------------------------- */

static int signals(char **argv) {
    pid_t pid = atoi(argv[0]);
    int number = atoi(argv[1]);
    union sigval value = {0};
    said("kill", kill(pid, number));
    said("kill group", kill(-pid, number));
    said("tkill", syscall(SYS_tkill, pid, number));
    said("sigqueue", sigqueue(pid, number, value));
    long pidfd = said("pidfd_open", syscall(SYS_pidfd_open, pid, 0));
    said("pidfd_send_signal", syscall(SYS_pidfd_send_signal, pidfd, number, 0, 0));
    // Everybody, without itself.
    signal(number, SIG_IGN);
    if (argv[2])
        said("kill all", kill(-1, number));
    return 0;
}

static int owner(char **argv) {
    pid_t pid = atoi(argv[0]);
    int number = atoi(argv[1]), pair[2], one = 1;
    struct { int type; int pid; } other = {1, pid};
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    said("F_SETOWN", fcntl(pair[0], F_SETOWN, pid));
    said("F_SETSIG", fcntl(pair[0], F_SETSIG, number));
    said("O_ASYNC", fcntl(pair[0], F_SETFL, O_ASYNC | O_NONBLOCK));
    said("write", write(pair[1], "x", 1));
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    said("F_SETOWN_EX", fcntl(pair[0], F_SETOWN_EX, &other));
    said("F_SETSIG", fcntl(pair[0], F_SETSIG, number));
    said("O_ASYNC", fcntl(pair[0], F_SETFL, O_ASYNC | O_NONBLOCK));
    said("write", write(pair[1], "x", 1));
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    said("SIOCSPGRP", ioctl(pair[0], 0x8902, &pid));
    said("FIOSETOWN", ioctl(pair[0], 0x8901, &pid));
    said("F_SETSIG", fcntl(pair[0], F_SETSIG, number));
    said("FIOASYNC", ioctl(pair[0], FIOASYNC, &one));
    said("write", write(pair[1], "x", 1));
    return 0;
}

/* Holds up everybody who opens the file. */
static int lease(char **argv) {
    int fd = open(argv[0], O_RDONLY);
    said("F_SETLEASE", fcntl(fd, F_SETLEASE, F_RDLCK));
    return stay();
}

static int type(char **argv) {
    struct winsize size = {77, 77, 0, 0};
    for (char *byte = argv[0]; *byte; byte++)
        said("TIOCSTI", ioctl(0, TIOCSTI, byte));
    said("TIOCSTI, upper half set", syscall(SYS_ioctl, 0, 0x100000000UL | TIOCSTI, argv[0]));
    char paste[2] = {3, 0};
    said("TIOCLINUX", ioctl(0, TIOCLINUX, paste));
    said("TIOCSWINSZ", ioctl(0, TIOCSWINSZ, &size));
    said("fchmod", fchmod(0, 0666));
    said("write", write(0, argv[0], strlen(argv[0])));
    return 0;
}

/* --- The network ---------------------------------------------------------------------------- */

static void greet(const char *what, int fd, const void *address, socklen_t length, int flags) {
    if (said(what, fd) < 0)
        return;
    if (flags) {
        said("sendto", sendto(fd, "reached\n", 8, flags, address, length));
        return;
    }
    if (said("connect", connect(fd, address, length)) == 0)
        said("send", send(fd, "reached\n", 8, MSG_NOSIGNAL));
    said("sendto", sendto(fd, "reached\n", 8, MSG_NOSIGNAL, address, length));
}

static int internet(char **argv) {
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t) atoi(argv[0]))};
    inet_pton(AF_INET, "127.0.0.1", &v4.sin_addr);
    greet("TCP", socket(AF_INET, SOCK_STREAM, 0), &v4, sizeof v4, 0);
    greet("TCP, fast open", socket(AF_INET, SOCK_STREAM, 0), &v4, sizeof v4, MSG_FASTOPEN);
    greet("MPTCP", socket(AF_INET, SOCK_STREAM, 262), &v4, sizeof v4, 0);
    greet("UDP", socket(AF_INET, SOCK_DGRAM, 0), &v4, sizeof v4, 0);
    greet("UDP-Lite", socket(AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE), &v4, sizeof v4, 0);
    greet("raw", socket(AF_INET, SOCK_RAW, IPPROTO_UDP), &v4, sizeof v4, 0);
    return 0;
}

static socklen_t local(struct sockaddr_un *at, const char *name) {
    memset(at, 0, sizeof *at);
    at->sun_family = AF_UNIX;
    // A name with an @ is an abstract one.
    snprintf(at->sun_path, sizeof at->sun_path, "%s", name);
    if (name[0] != '@')
        return sizeof *at;
    at->sun_path[0] = 0;
    return (socklen_t) (offsetof(struct sockaddr_un, sun_path) + strlen(name));
}

static int unix_socket(char **argv) {
    struct sockaddr_un at;
    socklen_t length = local(&at, argv[0]);
    int pair[2];
    greet("stream", socket(AF_UNIX, SOCK_STREAM, 0), &at, length, 0);
    greet("datagrams", socket(AF_UNIX, SOCK_DGRAM, 0), &at, length, 0);
    greet("packets", socket(AF_UNIX, SOCK_SEQPACKET, 0), &at, length, 0);
    for (int kind = SOCK_STREAM; kind <= SOCK_SEQPACKET; kind++) {
        if (said("pair", socketpair(AF_UNIX, kind, 0, pair)) == 0) {
            close(pair[1]);
            greet("end of a pair", pair[0], &at, length, 0);
        }
    }
    return 0;
}

static struct sockaddr_in raced;

static void *swap(void *ports) {
    for (;;) {
        *(volatile in_port_t *) &raced.sin_port = ((in_port_t *) ports)[0];
        *(volatile in_port_t *) &raced.sin_port = ((in_port_t *) ports)[1];
    }
    return 0;
}

/* Changes the address while it is looked at. */
static int race(char **argv) {
    static in_port_t ports[2];
    pthread_t thread;
    ports[0] = htons((uint16_t) atoi(argv[0]));
    ports[1] = htons((uint16_t) atoi(argv[1]));
    raced.sin_family = AF_INET;
    raced.sin_port = ports[0];
    inet_pton(AF_INET, "127.0.0.1", &raced.sin_addr);
    pthread_create(&thread, 0, swap, ports);
    for (int turn = 0; turn < atoi(argv[2]); turn++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *) &raced, sizeof raced) == 0)
            return 0;
        close(fd);
    }
    return 0;
}

/* Waits for somebody at a port, and at a name that others of the machine could mean. */
static int serve(char **argv) {
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons((uint16_t) atoi(argv[0]))};
    struct sockaddr_un at;
    int one = 1, tcp = socket(AF_INET, SOCK_STREAM, 0), name = socket(AF_UNIX, SOCK_STREAM, 0);
    setsockopt(tcp, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    said("bind", bind(tcp, (struct sockaddr *) &any, sizeof any));
    said("listen", listen(tcp, 5));
    said("bind", bind(name, (struct sockaddr *) &at, local(&at, argv[1])));
    said("listen", listen(name, 5));
    return stay();
}

static void take_name(const char *what, int fd, const struct sockaddr_un *at, socklen_t length) {
    struct sockaddr_un own = {0};
    socklen_t size = sizeof own;
    said(what, bind(fd, (const struct sockaddr *) at, length));
    listen(fd, 5);
    // One that the kernel has chosen is found by it.
    if (getsockname(fd, (struct sockaddr *) &own, &size) == 0 && size > offsetof(struct sockaddr_un, sun_path))
        printf("has the name @%.*s.\n", (int) (size - offsetof(struct sockaddr_un, sun_path) - 1), own.sun_path + 1);
}

/* Takes names that others of the machine could mean. */
static int take_names(char **argv) {
    static const int kinds[] = {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM};
    struct sockaddr_un at;
    char name[100];
    int pair[2], one = 1;
    for (int length = 0; length < 3; length++) {
        // With 13 and 25 bytes, its address is as long as those of the Internet.
        static const int lengths[] = {20, 13, 25};
        snprintf(name, sizeof name, "@%.*s", lengths[length], argv[0]);
        for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
            if (said("pair", socketpair(AF_UNIX, kinds[kind], 0, pair)) == 0)
                take_name("bind an end", pair[0], &at, local(&at, name));
            int fd = socket(AF_UNIX, kinds[kind], 0);
            if (said("socket", fd) >= 0)
                take_name("bind", fd, &at, local(&at, name));
        }
    }
    if (said("pair", socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) == 0)
        take_name("bind to any", pair[0], &(struct sockaddr_un) {.sun_family = AF_UNIX}, sizeof(sa_family_t));
    static const int asks[] = {SO_PASSCRED, 76 /* SO_PASSPIDFD */};
    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++)
        if (said("pair", socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair)) == 0) {
            said("setsockopt", setsockopt(pair[0], SOL_SOCKET, asks[i], &one, sizeof one));
            said("send", send(pair[0], "x", 1, 0));
            take_name("bind to none", pair[0], &at, 0);
        }
    return stay();
}

static union {
    struct sockaddr_in internet;
    struct sockaddr_un local;
} swapped;
static int swapped_ends[2];
static volatile int swaps;

static void *swap_both(void *name) {
    struct sockaddr_un at;
    int to = dup(swapped_ends[0]);
    local(&at, name);
    for (;;) {
        int any = socket(AF_INET, SOCK_STREAM, 0);
        memset(&swapped, 0, sizeof swapped.internet);
        swapped.internet.sin_family = AF_INET;
        dup2(any, swapped_ends[1]);
        dup2(to, swapped_ends[1]);
        memcpy(&swapped.local, &at, sizeof swapped.internet);
        close(any);
        swaps++;
    }
    return 0;
}

/* Changes both the address and the socket while they are looked at. The name has 13 bytes. */
static int race_for_name(char **argv) {
    pthread_t thread;
    struct sockaddr_un own;
    socketpair(AF_UNIX, SOCK_STREAM, 0, swapped_ends);
    swapped_ends[1] = fcntl(swapped_ends[1], F_DUPFD, 100);
    pthread_create(&thread, 0, swap_both, argv[0]);
    while (swaps == 0)
        sched_yield();
    for (clock_t end = clock() + CLOCKS_PER_SEC / 2; clock() < end;) {
        socklen_t size = sizeof own;
        bind(swapped_ends[1], (struct sockaddr *) &swapped, sizeof swapped.internet);
        if (getsockname(swapped_ends[0], (struct sockaddr *) &own, &size) == 0 && size > 2)
            break;
    }
    return stay();
}

/* --- Files ---------------------------------------------------------------------------------- */

static int steal(char **argv) {
    char path[600];
    static const char *ways[] = {
        "%s", "/proc/self/root%s", "/proc/self/cwd/../../../../../../../../..%s", "/proc/1/root%s", "/proc/1/cwd%s",
        "/proc/thread-self/root/../../..%s", "../../../../../../../../../../..%s", "/dev/fd/0/../../../../../..%s",
        "/tmp/../..%s", "//..//..%s", 0,
    };
    for (int i = 0; ways[i]; i++) {
        snprintf(path, sizeof path, ways[i], argv[0]);
        dump(path);
    }
    unlink("link");
    said("symlink", symlink(argv[0], "link"));
    dump("link");
    unlink("hard");
    said("link", link(argv[0], "hard"));
    dump("hard");
    int fd = open("/", O_PATH | O_DIRECTORY);
    mkdir("jail", 0777);
    said("chroot", chroot("jail"));
    fchdir(fd);
    for (int up = 0; up < 20; up++)
        chdir("..");
    snprintf(path, sizeof path, ".%s", argv[0]);
    dump(path);
    // By the number of an inode, without a path.
    struct { struct file_handle head; unsigned char bytes[128]; } handle = {.head = {.handle_bytes = 128}};
    int mount_id;
    said("name_to_handle_at", name_to_handle_at(AT_FDCWD, ".", &handle.head, &mount_id, 0));
    handle.head.handle_bytes = 8;
    handle.head.handle_type = 1;
    memcpy(handle.head.f_handle, (uint32_t[]){argv[1] ? (uint32_t) strtoul(argv[1], 0, 10) : 2, 0}, 8);
    fd = open(".", O_RDONLY);
    int found = open_by_handle_at(fd, &handle.head, O_RDONLY);
    if (said("open_by_handle_at", found) >= 0) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", found);
        dump(path);
    }
    return 0;
}

static int harm(char **argv) {
    char way[600];
    struct timespec times[2] = {{1, 0}, {1, 0}};
    static const char *ways[] = {"%s", "/proc/self/root%s", "/proc/1/root%s", "../../../../../../../../..%s", 0};
    for (int i = 0; ways[i]; i++) {
        snprintf(way, sizeof way, ways[i], argv[0]);
        put(way, "harm");
        said("truncate", truncate(way, 1));
        said("chmod", chmod(way, 0777));
        said("chown", chown(way, getuid(), getgid()));
        said("utimensat", utimensat(AT_FDCWD, way, times, 0));
        said("setxattr", setxattr(way, "user.harm", "x", 1, 0));
        said("rename", rename(way, "taken"));
        said("unlink", unlink(way));
    }
    unlink("bridge");
    symlink(argv[0], "bridge");
    put("bridge", "harm");
    said("lchown", chown("bridge", getuid(), getgid()));
    said("chmod", chmod("bridge", 0777));
    return 0;
}

/* Changes a file, and the file system that it is on, by a descriptor that may only be read. */
static int request(char **argv) {
    long flags = 0;
    struct fsxattr attributes = {0};
    struct fscrypt_remove_key_arg key = {.key_spec = {.type = FSCRYPT_KEY_SPEC_TYPE_IDENTIFIER}};
    int fd = open(argv[0], O_RDONLY);
    said("FS_IOC_GETFLAGS", ioctl(fd, FS_IOC_GETFLAGS, &flags));
    flags |= FS_NODUMP_FL;
    said("FS_IOC_SETFLAGS", ioctl(fd, FS_IOC_SETFLAGS, &flags));
    said("FS_IOC_SETFLAGS, upper half set", syscall(SYS_ioctl, fd, 0x100000000UL | FS_IOC_SETFLAGS, &flags));
    said("FS_IOC_FSGETXATTR", ioctl(fd, FS_IOC_FSGETXATTR, &attributes));
    attributes.fsx_xflags |= FS_XFLAG_NODUMP;
    said("FS_IOC_FSSETXATTR", ioctl(fd, FS_IOC_FSSETXATTR, &attributes));
    if (!argv[1])
        return 0;
    for (int i = 0; i < FSCRYPT_KEY_IDENTIFIER_SIZE; i++)
        sscanf(argv[1] + 2 * i, "%2hhx", &key.key_spec.u.identifier[i]);
    said("FS_IOC_REMOVE_ENCRYPTION_KEY", ioctl(fd, FS_IOC_REMOVE_ENCRYPTION_KEY, &key));
    said("FS_IOC_REMOVE_ENCRYPTION_KEY, upper half set",
        syscall(SYS_ioctl, fd, 0x100000000UL | FS_IOC_REMOVE_ENCRYPTION_KEY, &key));
    return 0;
}

/* Adds a key for encrypted files to a file system, and prints its name. */
static int add_key(char **argv) {
    struct {
        struct fscrypt_add_key_arg head;
        unsigned char raw[64];
    } key = {.head = {.key_spec = {.type = FSCRYPT_KEY_SPEC_TYPE_IDENTIFIER}, .raw_size = sizeof key.raw}};
    memset(key.raw, 7, sizeof key.raw);
    if (ioctl(open(argv[0], O_RDONLY), FS_IOC_ADD_ENCRYPTION_KEY, &key) != 0)
        return 1;
    for (int i = 0; i < FSCRYPT_KEY_IDENTIFIER_SIZE; i++)
        printf("%02x", key.head.key_spec.u.identifier[i]);
    puts("");
    return 0;
}

/* Says whether a file system has a key. */
static int has_key(char **argv) {
    struct fscrypt_get_key_status_arg key = {.key_spec = {.type = FSCRYPT_KEY_SPEC_TYPE_IDENTIFIER}};
    for (int i = 0; i < FSCRYPT_KEY_IDENTIFIER_SIZE; i++)
        sscanf(argv[1] + 2 * i, "%2hhx", &key.key_spec.u.identifier[i]);
    ioctl(open(argv[0], O_RDONLY), FS_IOC_GET_ENCRYPTION_KEY_STATUS, &key);
    puts(key.status == FSCRYPT_KEY_STATUS_PRESENT ? "present" : "absent");
    return 0;
}

/* Takes what is in a named pipe, and puts something there, without waiting. */
static int named_pipe(char **argv) {
    char bytes[256];
    int end = open(argv[0], O_RDONLY | O_NONBLOCK);
    if (argv[1] && said("open to read", end) >= 0) {
        ssize_t count = read(end, bytes, sizeof bytes);
        if (said("read", count) > 0)
            fwrite(bytes, 1, (size_t) count, stdout);
    }
    end = open(argv[0], O_WRONLY | O_NONBLOCK);
    if (said("open to write", end) >= 0)
        said("write", write(end, "harm", 4));
    end = open(argv[0], O_RDWR | O_NONBLOCK);
    if (said("open for both", end) >= 0)
        said("write", write(end, "harm", 4));
    return 0;
}

/* What its standard input allows besides reading. */
static int input(char **argv) {
    struct timespec times[2] = {{1, 0}, {1, 0}};
    struct stat what;
    char bytes[9] = {0};
    fcntl(0, F_SETFL, O_NONBLOCK);
    if (fstat(0, &what) == 0 && !S_ISSOCK(what.st_mode))
        said("read", read(0, bytes, 8));
    printf("[%s]\n", bytes);
    said("fchmod", fchmod(0, 0777));
    said("chmod", chmod("/proc/self/fd/0", 0777));
    said("chmod", chmod("/dev/stdin", 0777));
    said("futimens", futimens(0, times));
    said("fsetxattr", fsetxattr(0, "user.harm", "x", 1, 0));
    said("setxattr", setxattr("/proc/self/fd/0", "user.harm", "x", 1, 0));
    put("/proc/self/fd/0", "harm");
    said("write", write(0, "harm", 4));
    said("truncate", truncate("/proc/self/fd/0", 0));
    int below = openat(0, "secret", O_RDONLY);
    if (said("openat", below) >= 0)
        said("sendfile", sendfile(1, below, 0, 4096));
    struct sockaddr_un at;
    if (argv[0])
        said("sendto", sendto(0, "reached\n", 8, MSG_DONTWAIT, (struct sockaddr *) &at, local(&at, argv[0])));
    said("linkat", linkat(AT_FDCWD, "/proc/self/fd/0", AT_FDCWD, "linked", AT_SYMLINK_FOLLOW));
    return 0;
}

/* Leaves a program that runs as its owner, in every way that there is. */
static int set_id(char **argv) {
    struct { uint64_t flags, mode, resolve; } how = {O_CREAT | O_WRONLY, 04755, 0};
    int directory = open(argv[0], O_RDONLY | O_DIRECTORY);
    fchdir(directory);
    umask(0);
    put("a", "x");
    said("chmod", chmod("a", 04755));
    int fd = open("a", O_RDWR);
    said("fchmod", fchmod(fd, 04755));
    said("fchmod, upper half set", syscall(SYS_fchmod, fd, 0xffffffff00000000UL | 04755));
    said("fchmodat", syscall(SYS_fchmodat, AT_FDCWD, "a", 06755));
    said("fchmodat2", syscall(452, AT_FDCWD, "a", 06755, 0));
    said("open", open("b", O_CREAT | O_WRONLY, 04755));
    said("creat", creat("c", 02755));
    said("openat2", syscall(SYS_openat2, AT_FDCWD, "d", &how, sizeof how));
    said("mknod", mknod("e", S_IFREG | 04755, 0));
    said("mknod, device", mknod("f", S_IFCHR | 0600, 0x103));
    said("mknod, disk", mknod("g", S_IFBLK | 0600, 0xfe00));
    said("mkdir", mkdir("h", 02777));
    return 0;
}

/* A directory that is hard to remove: deep, closed, and with the names that whoever removes it might take. */
static int mess(char **argv) {
    char name[64];
    for (int i = 1; i <= 40; i++) {
        snprintf(name, sizeof name, ".altair-removed-%d", i);
        mkdir(name, 0700);
        if (chdir(name) == 0) {
            mkdir("below", 0700);
            mkdir("below/more", 0700);
            put("below/more/file", "x");
            chmod("below/more", 0);
            chmod("below", 0);
            chdir("..");
        }
    }
    if (argv[0])
        return 0;
    symlink("/etc", "out");
    mkdir("deep", 0700);
    chdir("deep");
    for (int depth = 0; depth < 3000; depth++) {
        mkdir("ddddddddddddddddddddddddddddddd", 0700);
        if (chdir("ddddddddddddddddddddddddddddddd") != 0)
            break;
    }
    return 0;
}

static int mounts(char **argv) {
    (void) argv;
    mkdir("m", 0777);
    said("unshare", unshare(CLONE_NEWUSER | CLONE_NEWNS));
    said("mount", mount("none", "m", "tmpfs", 0, 0));
    said("bind", mount("/", "m", 0, MS_BIND | MS_REC, 0));
    said("remount", mount(0, "/usr", 0, MS_REMOUNT | MS_BIND, 0));
    said("umount", umount2("/proc", MNT_DETACH));
    said("fsopen", syscall(SYS_fsopen, "tmpfs", 0));
    said("open_tree", syscall(SYS_open_tree, AT_FDCWD, "/", 1));
    return stay();
}

/* --- The kernel ----------------------------------------------------------------------------- */

static int kernel_surface(char **argv) {
    (void) argv;
    unsigned char nothing[256] = {0};
    static const unsigned long spaces[] = {CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC,
        CLONE_NEWUTS, CLONE_NEWCGROUP, 0x80, 0};
    uint64_t three[11] = {CLONE_NEWUSER};
    for (int i = 0; spaces[i]; i++)
        said("unshare", unshare((int) spaces[i]));
    long made = said("clone, namespace", syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
    if (made == 0)
        _exit(0);
    made = said("clone3", syscall(SYS_clone3, three, sizeof three));
    if (made == 0)
        _exit(0);
    said("io_uring_setup", syscall(SYS_io_uring_setup, 4, nothing));
    uint64_t map[16] = {1 | 4UL << 32, 4 | 4UL << 32};
    said("bpf", syscall(SYS_bpf, 0, map, sizeof map));
    unsigned perf[32] = {1, 128};
    said("perf_event_open", syscall(SYS_perf_event_open, perf, 0, -1, -1, 0));
    said("userfaultfd", syscall(SYS_userfaultfd, 1));
    said("fanotify_init", syscall(SYS_fanotify_init, 0x200, 0));
    said("add_key", syscall(SYS_add_key, "user", "altair-attack", "x", 1, -2));
    said("request_key", syscall(SYS_request_key, "user", "altair-attack", 0, -2));
    said("keyctl", syscall(SYS_keyctl, 0, -3, 1));
    said("memfd_secret", syscall(447, 0));
    said("io_setup", syscall(SYS_io_setup, 1, nothing));
    said("setns", setns(0, 0));
    said("personality", syscall(SYS_personality, 0x0040000));
    said("modify_ldt", syscall(SYS_modify_ldt, 0, nothing, 16));
    said("kcmp", syscall(SYS_kcmp, getpid(), getpid(), 0, 0, 0));
    said("syslog", syscall(SYS_syslog, 10, 0, 0));
    static const int families[][3] = {
        {AF_NETLINK, SOCK_RAW, 0}, {AF_PACKET, SOCK_RAW, 0}, {AF_VSOCK, SOCK_STREAM, 0}, {38, SOCK_SEQPACKET, 0},
        {AF_UNIX, SOCK_DGRAM, 0}, {AF_INET, SOCK_RAW, 1}, {AF_INET, SOCK_DGRAM, 1}, {44, SOCK_RAW, 0},
        {AF_INET, 5, 0}, {AF_INET, SOCK_STREAM, 132}, {29, SOCK_RAW, 1}, {15, SOCK_RAW, 2},
    };
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        said("socket", socket(families[i][0], families[i][1], families[i][2]));
    struct iovec part = {nothing, 1};
    int ends[2];
    pipe(ends);
    said("vmsplice", vmsplice(ends[1], &part, 1, 0));
#ifdef __x86_64__
    said("x32 getpid", syscall(0x40000000 | SYS_getpid));
    said("x32 ptrace", syscall(0x40000000 | 521, 0, 0, 0, 0));
#endif
    return stay();
}

#ifdef __x86_64__
/* The 32-bit entry, where call 20 is getpid. */
static int old_entry(char **argv) {
    long result = 20;
    __asm__ volatile("int $0x80" : "+a"(result) : : "memory");
    said("int 0x80", result);
    if (result > 0 && argv[0]) {
        unlink(argv[0]);
        put(argv[0], "entered");
    }
    return 0;
}
#endif

struct answering {
    volatile int listener;
};

static void *permit(void *own) {
    struct seccomp_notif call;
    struct seccomp_notif_resp answer;
    while (((struct answering *) own)->listener == 0)
        sched_yield();
    for (;;) {
        memset(&call, 0, sizeof call);
        if (ioctl(((struct answering *) own)->listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0)
            continue;
        memset(&answer, 0, sizeof answer);
        answer.id = call.id;
        answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        ioctl(((struct answering *) own)->listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
    return 0;
}

/* A filter of its own whose listener permits what the host's would refuse; then reaches a socket. */
static int permit_oneself(char **argv) {
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_connect, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof program / sizeof program[0], program};
    static struct answering answering;
    pthread_t thread;
    long listener;
    deaf();
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    // Without the filter, and while threads may be made.
    pthread_create(&thread, 0, permit, &answering);
    puts("ready");
    fflush(stdout);
    do {
        listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter);
    } while (listener < 0 && errno == EBUSY);
    if (listener < 0)
        return 1;
    answering.listener = (int) listener;
    return unix_socket(argv);
}

/* --- Resources ------------------------------------------------------------------------------ */

/* Memory that is written to; with a second argument it is then made read-only, which a limit for data does not count. */
static int take_memory(char **argv) {
    size_t bytes = 16 << 20;
    long taken = 0;
    while (taken < atol(argv[0])) {
        char *part = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (part == MAP_FAILED)
            break;
        memset(part, 1, bytes);
        taken += 16;
    }
    said("MiB", taken);
    void *shared = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    said("shared", shared == MAP_FAILED ? -1 : 0);
    said("memfd_create", memfd_create("x", 0));
    said("shmget", syscall(SYS_shmget, 0, bytes, 0600));
    return stay();
}

static int fill(char **argv) {
    static char block[1 << 20];
    memset(block, 1, sizeof block);
    int fd = open(argv[0], O_WRONLY | O_CREAT, 0600);
    long written = 0;
    while (written < atol(argv[1]) && write(fd, block, sizeof block) == (ssize_t) sizeof block)
        written++;
    said("MiB", written);
    return 0;
}

static int spin(char **argv) {
    (void) argv;
    deaf();
    puts("ready");
    fflush(stdout);
    for (;;)
        ;
}

static int wait_here(char **argv) {
    (void) argv;
    return stay();
}

/* --- What becomes real ---------------------------------------------------------------------- */

/* A list of rights of the owner, one more user, the group and others (acl(5), in the form of the attribute). */
static void share(const char *path, const char *name, uint32_t user) {
    struct { uint16_t tag, rights; uint32_t id; } entries[] = {
        {1, 7, (uint32_t) -1}, {2, 7, user}, {4, 7, (uint32_t) -1}, {0x10, 7, (uint32_t) -1}, {0x20, 5, (uint32_t) -1},
    };
    char list[4 + sizeof entries] = {2};
    memcpy(list + 4, entries, sizeof entries);
    if (said(name, setxattr(path, name, list, sizeof list, 0)) != 0)
        // In a user namespace there is no other one.
        said(name, (((uint32_t *) (list + 4))[3] = getuid(), setxattr(path, name, list, sizeof list, 0)));
}

/* Changes of everything that a look at names and contents does not find. */
static int change_quietly(char **argv) {
    (void) argv;
    struct timespec past[] = {{981173106, 0}, {981173106, 0}};
    umask(0);
    said("chmod", chmod("stored", 0666));
    int fd = open("linked", O_WRONLY | O_TRUNC);
    said("write", write(fd, "changed", 7));
    close(fd);
    said("utimensat", utimensat(AT_FDCWD, "timed", past, 0));
    said("setxattr", setxattr("marked", "user.mark", "1", 1, 0));
    share("shared", "system.posix_acl_access", 12345);
    share("directory", "system.posix_acl_access", 12345);
    share("directory", "system.posix_acl_default", 12345);
    share(".", "system.posix_acl_default", 12345);
    put("directory/made", "x");
    put("program", "x");
    said("set-id", chmod("program", 06755));
    mkdir("group", 0777);
    said("set-group-id", chmod("group", 02777));
    share("program", "system.posix_acl_access", 12345);
    said("symlink", symlink("/etc/passwd", "away"));
    said("mkfifo", mkfifo("pipe", 0666));
    unlink("deleted");
    for (int i = 0; i < 30; i++) {
        char name[16];
        snprintf(name, sizeof name, "a-%02d", i);
        put(name, "x");
    }
    mkdir("deep", 0777);
    said("chmod", chmod(".", 0777));
    fd = open(".", O_PATH | O_DIRECTORY);
    chdir("deep");
    for (int i = 0; i < 100; i++) {
        mkdir("d", 0777);
        chdir("d");
    }
    put("hidden", "x");
    fchdir(fd);
    return 0;
}

/* Not an attack: everything below the working directory, with what else there is to a file than its content. */
static int describe_in(const char *directory) {
    struct dirent **entries;
    int count = scandir(directory, &entries, 0, alphasort);
    for (int i = 0; i < count; i++) {
        char path[4096], names[4096], value[4096];
        struct stat found;
        if (strcmp(entries[i]->d_name, "..") == 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", directory, entries[i]->d_name);
        if (strcmp(entries[i]->d_name, ".") == 0 && strcmp(directory, ".") != 0)
            continue;
        lstat(path, &found);
        printf("%s\t%o %u:%u %lu %ld.%09ld %ld", path, found.st_mode, found.st_uid, found.st_gid,
               S_ISDIR(found.st_mode) ? 0 : (unsigned long) found.st_nlink, S_ISDIR(found.st_mode) ? 0 : found.st_mtim.tv_sec,
               S_ISDIR(found.st_mode) ? 0 : found.st_mtim.tv_nsec, S_ISREG(found.st_mode) ? (long) found.st_size : 0);
        ssize_t length = llistxattr(path, names, sizeof names);
        for (ssize_t at = 0; at < length; at += (ssize_t) strlen(names + at) + 1) {
            ssize_t bytes = lgetxattr(path, names + at, value, sizeof value);
            printf(" %s=", names + at);
            for (ssize_t byte = 0; byte < bytes; byte++)
                printf("%02x", (unsigned char) value[byte]);
        }
        puts("");
        if (S_ISDIR(found.st_mode) && strcmp(entries[i]->d_name, ".") != 0)
            describe_in(path);
    }
    return 0;
}

static int describe(char **argv) {
    (void) argv;
    return describe_in(".");
}

static const struct {
    const char *name;
    int (*make)(char **);
} ATTACKS[] = {
    {"rummage", rummage}, {"memory", memory}, {"change", change}, {"take-descriptor", take_descriptor},
    {"hide", hide}, {"run-away", run_away}, {"multiply", multiply}, {"shuffle", shuffle}, {"threads", threads},
    {"signals", signals}, {"owner", owner}, {"lease", lease}, {"type", type}, {"internet", internet},
    {"unix", unix_socket}, {"race", race}, {"serve", serve}, {"take-names", take_names}, {"race-for-name", race_for_name}, {"steal", steal}, {"harm", harm}, {"input", input}, {"named-pipe", named_pipe},
    {"request", request}, {"add-key", add_key}, {"has-key", has_key},
    {"set-id", set_id}, {"mess", mess}, {"mounts", mounts}, {"kernel", kernel_surface},
    {"permit-oneself", permit_oneself}, {"take-memory", take_memory}, {"fill", fill}, {"spin", spin},
    {"stay", wait_here}, {"change-quietly", change_quietly}, {"describe", describe},
#ifdef __x86_64__
    {"old-entry", old_entry},
#endif
};

int main(int argc, char **argv) {
    for (size_t i = 0; argc > 1 && i < sizeof ATTACKS / sizeof ATTACKS[0]; i++)
        if (strcmp(argv[1], ATTACKS[i].name) == 0)
            return ATTACKS[i].make(argv + 2);
    fprintf(stderr, "There is no such attack.\n");
    return 2;
}
