"""Runs inside a sandbox and tries to get out; prints one JSON object of what the kernel answered.

A value is an errno's name, or "ok" when the attempt worked. Nothing here knows what is right: the tests do.
"""

import ctypes
import errno
import json
import os
import socket
import stat

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long

# Numbers of x86-64 and, where it differs, of arm64.
NUMBERS = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "open_tree": (428, 428),
    "move_mount": (429, 429), "fsopen": (430, 430), "fsmount": (432, 432), "mount_setattr": (442, 442), "unshare": (272, 97),
    "setns": (308, 268), "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104), "reboot": (169, 142), "swapon": (167, 224),
    "swapoff": (168, 225), "open_by_handle_at": (304, 265), "clock_settime": (227, 112), "settimeofday": (164, 170),
    "clock_adjtime": (305, 266), "sethostname": (170, 161), "setdomainname": (171, 162), "syslog": (103, 116), "acct": (163, 89),
    "quotactl": (179, 60), "setuid": (105, 146), "setgid": (106, 144), "setgroups": (116, 159), "setresuid": (117, 147),
    "shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190), "clone3": (435, 435), "personality": (135, 92),
    "fanotify_init": (300, 262), "lookup_dcookie": (212, 18), "kcmp": (312, 272), "vhangup": (153, 58), "mlockall": (151, 230),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440), "move_pages": (279, 239), "migrate_pages": (256, 238),
    "mbind": (237, 235), "name_to_handle_at": (303, 264), "nfsservctl": (180, 42),
}
X86_ONLY = {"iopl": 172, "ioperm": 173, "modify_ldt": 154, "create_module": 174, "uselib": 134, "ustat": 136, "_sysctl": 156}
CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWNET, CLONE_NEWPID = 0x10000000, 0x20000, 0x40000000, 0x20000000


def named(number):
    return errno.errorcode.get(number, str(number))


def call(name, *args):
    if name in X86_ONLY:
        if os.uname().machine != "x86_64":
            return "ENOSYS"
        number = X86_ONLY[name]
    else:
        number = NUMBERS[name][0 if os.uname().machine == "x86_64" else 1]
    ctypes.set_errno(0)
    # In a child: some of these, were they allowed, would change or end the caller.
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
        answer = libc.syscall(ctypes.c_long(number), *wide)
        os.write(write, (named(ctypes.get_errno()) if answer == -1 else "ok").encode())
        os._exit(0)
    os.close(write)
    said = b""
    while piece := os.read(read, 100):
        said += piece
    os.close(read)
    os.waitpid(pid, 0)
    return said.decode() or "killed"


def syscalls():
    here, buffer = ctypes.c_char_p(b"/work"), ctypes.create_string_buffer(256)
    tmpfs = ctypes.c_char_p(b"tmpfs")
    return {
        "ptrace-traceme-seize": call("ptrace", 0x4206, os.getppid() or 1, 0, 0),
        "process_vm_readv": call("process_vm_readv", 1, buffer, 1, buffer, 1, 0),
        "process_vm_writev": call("process_vm_writev", 1, buffer, 1, buffer, 1, 0),
        "bpf": call("bpf", 0, buffer, 72),
        "perf_event_open": call("perf_event_open", buffer, 0, -1, -1, 0),
        "userfaultfd": call("userfaultfd", 0),
        "io_uring_setup": call("io_uring_setup", 1, buffer),
        "io_uring_enter": call("io_uring_enter", 0, 0, 0, 0, 0, 0),
        "mount": call("mount", tmpfs, here, tmpfs, 0, 0),
        "mount-remount-root": call("mount", 0, ctypes.c_char_p(b"/"), 0, 0x20 | 0x1000, 0),
        "umount2": call("umount2", ctypes.c_char_p(b"/etc/resolv.conf"), 2),
        "pivot_root": call("pivot_root", here, here),
        "chroot": call("chroot", here),
        "open_tree": call("open_tree", -100, here, 1),
        "move_mount": call("move_mount", -1, here, -100, here, 0),
        "fsopen": call("fsopen", tmpfs, 0),
        "fsmount": call("fsmount", -1, 0, 0),
        "mount_setattr": call("mount_setattr", -100, here, 0, buffer, 32),
        "unshare-user": call("unshare", CLONE_NEWUSER),
        "unshare-mount": call("unshare", CLONE_NEWNS),
        "unshare-net": call("unshare", CLONE_NEWNET),
        "unshare-user-net": call("unshare", CLONE_NEWUSER | CLONE_NEWNET),
        "unshare-pid": call("unshare", CLONE_NEWPID),
        "setns": call("setns", os.open("/proc/self/ns/mnt", os.O_RDONLY) if os.path.exists("/proc/self/ns/mnt") else -1, 0),
        "add_key": call("add_key", ctypes.c_char_p(b"user"), ctypes.c_char_p(b"x"), buffer, 4, -3),
        "request_key": call("request_key", ctypes.c_char_p(b"user"), ctypes.c_char_p(b"x"), 0, -3),
        "keyctl": call("keyctl", 0, -3, 1),
        "init_module": call("init_module", buffer, 4, buffer),
        "finit_module": call("finit_module", 0, buffer, 0),
        "delete_module": call("delete_module", ctypes.c_char_p(b"overlay"), 0),
        "create_module": call("create_module", buffer, 4),
        "kexec_load": call("kexec_load", 0, 0, 0, 0),
        "reboot": call("reboot", 0xFEE1DEAD - (1 << 32), 672274793, 0x89ABCDEF - (1 << 32), 0),
        "swapon": call("swapon", here, 0),
        "swapoff": call("swapoff", here),
        "open_by_handle_at": call("open_by_handle_at", -100, buffer, 0),
        "clock_settime": call("clock_settime", 0, buffer),
        "settimeofday": call("settimeofday", buffer, 0),
        "clock_adjtime": call("clock_adjtime", 0, ctypes.create_string_buffer(b"\x01" + bytes(300))),
        "sethostname": call("sethostname", here, 4),
        "setdomainname": call("setdomainname", here, 4),
        "syslog-read-all": call("syslog", 3, buffer, 256),
        "syslog-clear": call("syslog", 5, 0, 0),
        "acct": call("acct", here),
        "quotactl": call("quotactl", 0, here, 0, buffer),
        "setuid-0": call("setuid", 0),
        "setgid-0": call("setgid", 0),
        "setgroups-0": call("setgroups", 1, buffer),
        "setresuid-0": call("setresuid", 0, 0, 0),
        "shmget": call("shmget", 0, 4096, 0o1600),
        "msgget": call("msgget", 0, 0o1600),
        "semget": call("semget", 0, 1, 0o1600),
        "clone3": call("clone3", buffer, 64),
        "personality-no-randomize": call("personality", 0x0040000),
        "iopl": call("iopl", 3),
        "ioperm": call("ioperm", 0, 8, 1),
        "modify_ldt": call("modify_ldt", 0, buffer, 16),
        "fanotify_init": call("fanotify_init", 0, 0),
        "kcmp": call("kcmp", 1, 1, 0, 0, 0),
        "vhangup": call("vhangup"),
        "pidfd_getfd": call("pidfd_getfd", -1, 0, 0),
        "name_to_handle_at": call("name_to_handle_at", -100, here, buffer, buffer, 0),
    }


def attempt(action):
    try:
        action()
        return "ok"
    except OSError as refused:
        return named(refused.errno)


def nodes():
    found = {}
    for name, mode, device in [("char", stat.S_IFCHR, (1, 1)), ("kmsg", stat.S_IFCHR, (1, 11)), ("block", stat.S_IFBLK, (8, 0)), ("vda", stat.S_IFBLK, (254, 0))]:
        path = f"/work/node-{name}"
        found[name] = attempt(lambda: os.mknod(path, mode | 0o666, os.makedev(*device)))
        # Where a node can be made it must at least lead nowhere.
        found[name + "-open"] = attempt(lambda: os.close(os.open(path, os.O_RDWR)))
    found["fifo"] = attempt(lambda: os.mkfifo("/work/node-fifo"))
    return found


def sockets():
    families = {
        "inet-stream": (2, 1, 0), "inet-dgram": (2, 2, 0), "inet-raw": (2, 3, 1), "inet6-stream": (10, 1, 0), "inet6-raw": (10, 3, 58),
        "packet": (17, 3, 0x300), "netlink-route": (16, 3, 0), "netlink-audit": (16, 3, 9), "alg": (38, 5, 0), "vsock": (40, 1, 0),
        "bluetooth": (31, 3, 1), "key": (15, 3, 2), "can": (29, 3, 1), "rds": (21, 5, 0), "tipc": (30, 1, 0), "xdp": (44, 3, 0), "smc": (43, 1, 0),
        "unix": (1, 1, 0),
    }
    made = {name: attempt(lambda how=how: socket.socket(*how).close()) for name, how in families.items()}
    targets = {"internet": "1.1.1.1", "metadata": "169.254.169.254", "bridge": "172.17.0.1", "private": "10.0.0.1"}
    for name, address in targets.items():
        made["connect-" + name] = attempt(lambda address=address: socket.create_connection((address, 80), timeout=3).close())
    made["resolve"] = attempt(lambda: socket.getaddrinfo("example.com", 80))
    return made


def files():
    """Every place that accepts a new file or an append, and devices that are there."""
    writable, appended, devices, setuid = [], [], [], []
    for top, directories, names in os.walk("/", onerror=lambda _: None):
        if top.startswith("/proc/") and top.count("/") > 2 and not top.startswith("/proc/sys"):
            directories[:] = []
            continue
        probe = os.path.join(top, ".plimsoll-probe")
        try:
            os.close(os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            os.unlink(probe)
            writable.append(top)
        except OSError:
            pass
        for name in names:
            path = os.path.join(top, name)
            try:
                mode = os.lstat(path).st_mode
                if stat.S_ISBLK(mode):
                    devices.append(path)
                if stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID):
                    setuid.append(path)
                own_process = path.startswith("/proc/self") or path.startswith("/proc/thread-self") or path[6:7].isdigit()
                if stat.S_ISREG(mode) and not path.startswith(("/work/", "/tmp/")) and not own_process:
                    os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK))
                    appended.append(path)
            except OSError:
                pass
    return {"writable": sorted(writable), "appended": sorted(appended), "block-devices": devices, "set-user-id": setuid}


def reads():
    paths = [
        "/dev/mem", "/dev/kmem", "/dev/kmsg", "/dev/port", "/dev/sda", "/dev/vda", "/dev/fuse", "/dev/net/tun", "/dev/kvm",
        "/proc/kcore", "/proc/kmsg", "/proc/sysrq-trigger", "/proc/timer_list", "/proc/sched_debug", "/proc/latency_stats",
        "/sys/kernel/debug", "/sys/firmware", "/sys/kernel/security", "/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock",
        "/run/host-api.sock", "/etc/shadow", "/proc/1/root/etc/shadow", "/proc/1/environ", "/proc/1/mem", "/proc/1/fd/0",
    ]
    answers = {}
    for path in paths:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            try:
                content = os.listdir(path) if os.path.isdir(path) else os.read(descriptor, 64)
                answers[path] = "ok" if content else "empty"
            finally:
                os.close(descriptor)
        except OSError as refused:
            answers[path] = named(refused.errno)
    for path in ["/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/vm/drop_caches", "/proc/1/oom_score_adj"]:
        answers["write " + path] = attempt(lambda: os.close(os.open(path, os.O_WRONLY)))
    return answers


def execution():
    import shutil

    answers = {}
    for place in ["/work", "/tmp", "/dev/shm"]:
        shutil.copy("/bin/true", place + "/copied")
        os.chmod(place + "/copied", 0o4755)
        answers[place] = attempt(lambda: os.spawnv(os.P_WAIT, place + "/copied", ["copied"]) == 127 and (_ for _ in ()).throw(OSError(errno.EACCES, "")))
    return answers


def facts():
    status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
    return {
        "status": {name: status.get(name, "").split() for name in ["Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp"]},
        "interfaces": sorted(line.split(":")[0].strip() for line in open("/proc/net/dev").read().splitlines()[2:]),
        "resolver": open("/etc/resolv.conf").read(),
        "etc": {p: open(p, errors="replace").read() for p in ["/etc/resolv.conf", "/etc/hosts", "/etc/hostname"]},
        "etc_mounts": sorted(p for p in (line.split()[1] for line in open("/proc/mounts")) if p == "/etc" or p.startswith("/etc/")),
        "processes": sorted(int(p) for p in os.listdir("/proc") if p.isdigit()),
        "environment": dict(os.environ),
        "time": __import__("time").time(),
    }


if __name__ == "__main__":
    parts = [syscalls, nodes, sockets, files, reads, execution, facts]
    print(json.dumps({part.__name__: part() for part in parts}))
