# SPDX-License-Identifier: Apache-2.0
"""Support for the lane of driver packages: the vendors' servers on loopback under their own names, packages of the simulated driver, and
machines on which a package manager finds what a distribution's has."""
import dataclasses
import email.utils
import functools
import gzip
import http.server
import os
import pathlib
import re
import select
import shlex
import shutil
import ssl
import subprocess
import threading
import time

from lane_support import Lane
from package_roots import PATH, THEIRS, DebRoot, Files, described, stub_rpm
from repository_support import Handler, Keys

TOP = pathlib.Path(__file__).resolve().parents[2]
HOSTS = ("developer.nvidia.com", "download.nvidia.com", "developer.download.nvidia.com", "deb.debian.org", "packages.example.com")
ASKED = "var/log/asked"  # the commands that gantry called, one a line, their words after tabs


class HostHandler(Handler):
    """Serves a directory for each name of a host."""

    def translate_path(self, path: str) -> str:
        return super().translate_path(f"/{self.headers.get('Host', '').partition(':')[0]}{path}")


class Servers:
    """Web servers on loopback that are all of HOSTS, with a certificate of their own."""

    def __init__(self, lane: Lane) -> None:
        self.top, self.certificate = lane.work / "hosts", lane.work / "certificate.pem"
        key = lane.work / "certificate.key"
        names = ",".join(f"DNS:{name}" for name in HOSTS)
        lane.run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", self.certificate, "-subj", "/CN=lane", "-days", "2",
                 "-addext", f"subjectAltName={names}", check=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        # Gantry itself fetches the keys of repositories, in the lane's own mount namespace.
        self.names = "".join(f"127.0.0.1 {host}\n" for host in ("localhost", *HOSTS))
        (lane.work / "hosts.txt").write_text(self.names)
        subprocess.run(["mount", "--bind", lane.work / "hosts.txt", "/etc/hosts"], check=True)
        handler = functools.partial(HostHandler, directory=str(self.top))
        for port in (80, 443):
            server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
            if port == 443:
                server.socket = context.wrap_socket(server.socket, server_side=True)
            threading.Thread(target=server.serve_forever, daemon=True).start()

    def directory(self, url: str) -> pathlib.Path:
        """Where what has this URL is, with the directories above it."""
        place = self.top / re.sub(r"^https?://", "", url)
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    def serve(self, url: str, source: pathlib.Path) -> None:
        """In the place of what was there."""
        place = self.directory(url.rstrip("/"))
        fresh = place.with_name(place.name + ".new")
        fresh.symlink_to(source)
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        fresh.replace(place)


class Signer:
    """A key that signs packages and repositories."""

    def __init__(self, keys: Keys, name: str) -> None:
        self.keys, self.key = keys, keys.make(name)
        self.public = keys.gpg("--armor", "--export", self.key).stdout
        shown = keys.gpg("--with-colons", "--list-keys", self.key).stdout
        self.fingerprint = next(line.split(":")[9] for line in shown.splitlines() if line.startswith("fpr:"))

    def gpg(self, *argv) -> None:
        self.keys.gpg("--yes", "--local-user", self.key, *map(str, argv)).check_returncode()

    def packages(self, files: list[pathlib.Path]) -> None:
        # Debian's rpm looks for gpg under the name gpg2.
        self.keys.lane.run("rpmsign", "--define", f"_gpg_name {self.key}", "--define", f"__gpg {shutil.which('gpg')}", "--addsign", *files,
                           env={"PATH": PATH, "GNUPGHOME": str(self.keys.home)}, check=True)

    def rpm_metadata(self, repository: pathlib.Path) -> None:
        self.gpg("--armor", "--detach-sign", repository / "repodata/repomd.xml")
        (repository / "repodata/repomd.xml.key").write_text(self.public)


def owned(top: str, files: Files) -> Files:
    """Also the directories from this one on, so that they go with the package."""
    above = {str(directory) for path in files for directory in pathlib.PurePath(path).parents}
    return dict.fromkeys(sorted(directory for directory in above if directory.startswith(top))) | files


@dataclasses.dataclass
class Driver:
    """A driver of `gantry sim package`, unpacked."""
    version: str
    tree: pathlib.Path

    @staticmethod
    def unpack(lane: Lane, version: str) -> "Driver":
        run, tree = lane.work / f"{version}.run", lane.work / f"driver-{version}"
        if tree.exists():
            return Driver(version, tree)
        lane.run(lane.bin / "gantry", "sim", "package", "--driver", version, "-o", run, check=True)
        lane.run("sh", run, "--extract-only", "--target", tree, check=True)
        return Driver(version, tree)

    def library(self, name: str, directory: str) -> Files:
        """libcuda.so.430.26 and libcuda.so.1."""
        return {f"{directory}/{name}.{self.version}": self.tree / f"{name}.{self.version}", f"{directory}/{name}.1": f"{name}.{self.version}"}

    def libraries(self, directory: str) -> Files:
        files: Files = {}
        for name in ("libcuda.so", "libnvidia-ml.so", "libnvidia-ptxjitcompiler.so"):
            files |= self.library(name, directory)
        return files

    def program(self, *names: str) -> Files:
        return {f"/usr/bin/{name}": self.tree / name for name in names}

    def source(self, directory: str, flavour: str) -> Files:
        """The source of the modules, which these packages build on the machine."""
        found = sorted(path for path in (self.tree / flavour).rglob("*") if path.is_file())
        return owned(directory, {f"{directory}/{path.relative_to(self.tree / flavour)}": path for path in found})

    def firmware(self, directory: str) -> Files:
        return owned("/usr/lib/firmware/nvidia", {f"{directory}/{path.name}": path for path in sorted((self.tree / "firmware").glob("*.bin"))})


def rpm(lane: Lane, name: str, version: str = "1.0", files: Files | None = None, header: str = "") -> pathlib.Path:
    return stub_rpm(lane, name, files or {}, version, f"{header}AutoReqProv: no")


def rpm_repository(place: pathlib.Path, packages: list[pathlib.Path], modules: str = "") -> pathlib.Path:
    """Without signatures."""
    place.mkdir(parents=True)
    for package in packages:
        shutil.copy(package, place)
    subprocess.run(["createrepo_c", "--quiet", "--no-database", place], check=True)
    if modules:
        (place.parent / "modules.yaml").write_text(modules)
        subprocess.run(["modifyrepo_c", "--mdtype=modules", place.parent / "modules.yaml", place / "repodata"], check=True, capture_output=True)
    return place


def deb_repository(place: pathlib.Path, codename: str, components: dict[str, list[pathlib.Path]]) -> pathlib.Path:
    """An archive as Debian's, without Release files."""
    for component, packages in components.items():
        (place / "pool" / component).mkdir(parents=True)
        for package in packages:
            shutil.copy(package, place / "pool" / component)
        index = place / f"dists/{codename}/{component}/binary-amd64/Packages"
        index.parent.mkdir(parents=True)
        made = subprocess.run(["apt-ftparchive", "packages", f"pool/{component}"], cwd=place, capture_output=True, check=True)
        index.write_bytes(made.stdout)
        index.with_name("Packages.gz").write_bytes(gzip.compress(made.stdout, mtime=0))
    return place


def release_archive(suite: pathlib.Path, codename: str, signer: Signer | None, begins: float = 0, ends: float = 0) -> None:
    """Writes Release, and InRelease if it is signed. Times are in seconds from now."""
    for old in ("Release", "InRelease"):
        (suite / old).unlink(missing_ok=True)
    components = " ".join(sorted(path.name for path in suite.iterdir() if path.is_dir()))
    facts = {"Origin": "Debian", "Suite": codename, "Codename": codename, "Architectures": "amd64", "Components": components}
    options = [word for name, value in facts.items() for word in ("-o", f"APT::FTPArchive::Release::{name}={value}")]
    made = subprocess.run(["apt-ftparchive", *options, "release", suite], capture_output=True, text=True, check=True)
    text = re.sub("^Date: .*$", f"Date: {http_time(begins)}", made.stdout, flags=re.M)
    if ends:
        text = text.replace("\nDate:", f"\nValid-Until: {http_time(ends)}\nDate:")
    (suite / "Release").write_text(text)
    if signer is not None:
        signer.gpg("--clearsign", "--output", suite / "InRelease", suite / "Release")


def http_time(offset: float) -> str:
    return email.utils.formatdate(time.time() + offset, usegmt=True).replace("GMT", "UTC")


RECORDER = """#!/bin/sh
# Notes what gantry calls, not what the package manager and its scripts do.
read -r parent </proc/$PPID/comm
if [ "$parent" = gantry ]; then
  printf '%s' {name} >>/{asked}
  for word; do printf '\\t%s' "$word" >>/{asked}; done
  echo >>/{asked}
fi
exec {program} "$@"
"""


class Machine(DebRoot):
    """This machine's programs in an overlay, as another distribution on another machine: with its os-release, its GPU, the servers' names
    and certificate. dnf and zypper find a database of rpm's there in which nothing is installed."""

    def __init__(self, lane: Lane, name: str, servers: Servers, os_release: str, simulated: str) -> None:
        super().__init__(lane, name)
        self.name = name
        self.write("usr/lib/os-release", os_release)
        self.path("etc/os-release").unlink(missing_ok=True)
        self.path("etc/os-release").symlink_to("../usr/lib/os-release")
        self.servers = servers
        self.write("etc/hosts", servers.names)
        trusted = self.path("etc/ssl/certs/ca-certificates.crt")
        self.write("etc/ssl/certs/ca-certificates.crt", (trusted.read_text() if trusted.exists() else "") + servers.certificate.read_text())
        self.add_gpu(lane.machine(simulated) if not (lane.work / simulated).exists() else lane.work / simulated)
        self.run("rm", "-rf", "/var/lib/dnf", "/var/cache/dnf", "/var/lib/zypp", "/etc/zypp/repos.d", "/etc/yum.repos.d", "/root/.rpmdb", check=True)

    def write(self, path: str, text: str) -> None:
        self.path(path).parent.mkdir(parents=True, exist_ok=True)
        self.path(path).unlink(missing_ok=True)
        self.path(path).write_text(text)

    def add_gpu(self, simulated: pathlib.Path) -> None:
        """The GPU of a simulated machine, without a driver."""
        for below in ("bus", "devices"):
            if (simulated / "sys" / below).exists():
                shutil.copytree(simulated / "sys" / below, self.path(f"sys/{below}"), symlinks=True, dirs_exist_ok=True)
        for driver in [*self.path("sys").rglob("driver"), *self.path("sys/bus/pci/drivers").glob("nvidia*")]:
            driver.unlink() if driver.is_symlink() else shutil.rmtree(driver)

    def use_rpm(self, *base: pathlib.Path) -> None:
        """No package of Debian's is installed any more; these are."""
        self.run("rm", "-rf", "/var/lib/dpkg", "/usr/bin/dpkg", "/usr/bin/apt-get", "/usr/bin/apt", check=True)
        self.write("etc/rpm/macros", "%_dbpath /var/lib/rpm\n")
        self.write("etc/dnf/dnf.conf", "[main]\ngpgcheck=1\ninstallonly_limit=3\nclean_requirements_on_remove=True\nbest=True\nskip_if_unavailable=False\n")
        for directory in ("etc/yum.repos.d", "etc/zypp/repos.d"):
            self.path(directory).mkdir(parents=True)
        for package in base:
            shutil.copy(package, self.path("tmp"))
        self.run("rpm", "-i", *(f"/tmp/{package.name}" for package in base), check=True)

    def record(self, *programs: str) -> None:
        """The commands that gantry calls are noted from now on."""
        for program in programs:
            path = program if program.startswith("/") else shutil.which(program, path="/usr/bin:/usr/sbin:/bin:/sbin")
            real, place = path, f"usr/local/sbin/{program}"
            if program.startswith("/"):
                real, place = f"{path}.real", path.lstrip("/")
                shutil.copy(self.path(place), self.path(place + ".real"))
            self.write(place, RECORDER.format(name=program, asked=ASKED, program=real))
            self.path(place).chmod(0o755)

    def changed(self) -> list[str]:
        """With contents, so that a file that changes again is seen."""
        found = []
        for below in super().changed():
            place = self.upper / below
            found.append(f"{below} {described(place) if os.path.lexists(place) else ''}")
        return sorted(line for line in found if not line.startswith((*THEIRS, "var/lib/YaST2", "proc", "dev")) and "__pycache__" not in line)

    def left(self) -> list[str]:
        return sorted({line.split(" ", 1)[0] for line in set(self.changed()) ^ set(self.before)})

    def gantry(self, *words: str) -> subprocess.CompletedProcess:
        """On the machine, from outside, as in a pod."""
        environment = {"PATH": f"/usr/local/sbin:{PATH}", "HOME": "/root", "SSL_CERT_FILE": str(self.servers.certificate)}
        return self.lane.run(self.lane.bin / "gantry", "driver", *words, "--host-root", self.root, env=environment)

    def on_terminal(self, script: str, answers: tuple[str, ...] = ()) -> subprocess.CompletedProcess:
        """A person runs it and answers its questions, which zypper asks on a terminal alone; when there is no answer left, with Enter."""
        controller, terminal = os.openpty()
        argv = ["setsid", "--ctty", "--wait", "chroot", str(self.root), "sh", "-ec", script]
        process = subprocess.Popen(argv, stdin=terminal, stdout=terminal, stderr=terminal, env={"PATH": PATH, "HOME": "/root", "LC_ALL": "C", "TERM": "dumb"})
        os.close(terminal)
        output, left, answered, quiet = b"", list(answers), 0, 0
        while quiet < 60:
            if not select.select([controller], [], [], 1)[0]:
                quiet += 1
                # zypper throws away what was typed before it reads; a question that is still the last word is answered again.
                if re.search(rb"\(\w+\): \w*$", output):
                    if len(output) != answered:
                        answered, answer = len(output), left.pop(0) if left else ""
                    os.write(controller, f"{answer}\n".encode())
                continue
            quiet = 0
            try:
                output += os.read(controller, 65536)
            except OSError:  # the other end is closed
                break
        else:
            process.kill()
        os.close(controller)
        return subprocess.CompletedProcess(argv, process.wait(), output.decode(errors="replace"), "")

    def asked(self) -> list[list[str]]:
        path = self.path(ASKED)
        found = [line.split("\t") for line in path.read_text().splitlines()] if path.exists() else []
        path.unlink(missing_ok=True)
        return found


class Golden:
    """The plan of a distribution in tests/golden/driver_packages: commands and files. What a person does about keys with curl and gpg gantry
    does itself."""

    def __init__(self, name: str) -> None:
        text = (TOP / "tests/golden/driver_packages" / name).read_text()
        install, removal = text.split("\n## removal\n")
        self.install, self.files = self.read(install.split("\n", 1)[1])
        self.removal, _ = self.read(removal.split("\n## notes\n")[0])

    @staticmethod
    def read(text: str) -> tuple[list[list[str]], dict[str, str]]:
        pattern = r"^cat >(\S+) <<'EOF'\n(.*?)^EOF\n"
        files = dict(re.findall(pattern, text, flags=re.M | re.S))
        rest = re.sub(pattern, "", text, flags=re.M | re.S)
        return [shlex.split(line) for line in rest.splitlines() if line and not line.startswith(("#", "curl ", "gpg ", "rpm "))], files
