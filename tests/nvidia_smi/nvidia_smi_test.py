#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The simulated driver's nvidia-smi, run as a program on machines made by `gantry sim create`.

Environment: GANTRY (program), GANTRY_SIM_LIBRARIES (its simulated driver), NVIDIA_SMI (the build to test,
by default the one the machine has). Arguments as for unittest."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
GOLDEN = HERE.parent / "golden"
sys.path.insert(0, str(HERE))
from normalise import normalise  # noqa: E402


class Machine:
    """A tree of a simulated machine, made once per run of the tests."""
    made: dict[str, "Machine"] = {}
    place = tempfile.mkdtemp(prefix="nvidia-smi-test-")

    def __init__(self, name: str, variant: str = ""):
        self.root = pathlib.Path(self.place) / (name + variant)
        done = subprocess.run([os.environ["GANTRY"], "sim", "create", name, "--root", str(self.root)],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"gantry sim create {name}: {done.stdout}{done.stderr}")
        marker = dict(line.split(" ", 1) for line in (self.root / ".gantry-sim").read_text().splitlines())
        self.libraries = str(self.root) + os.path.dirname(marker["nvml"])
        self.program = os.environ.get("NVIDIA_SMI") or str(self.root) + marker["bin"] + "/nvidia-smi"

    @classmethod
    def get(cls, name: str) -> "Machine":
        """Shared between tests that only look."""
        if name not in cls.made:
            cls.made[name] = cls(name)
        return cls.made[name]

    def run(self, *arguments: str, libraries: str | None = None, user: int | None = None):
        env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC",
               "LD_LIBRARY_PATH": self.libraries if libraries is None else libraries}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
            if name in os.environ:
                env[name] = os.environ[name]
        done = subprocess.run([self.program, *arguments], env=env, capture_output=True, text=True, timeout=60,
                              check=False, user=user)
        return done.returncode, done.stdout, done.stderr

    def inject(self, *arguments: str):
        done = subprocess.run([os.environ["GANTRY"], "sim", "inject", "--root", str(self.root), *arguments],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"gantry sim inject {' '.join(arguments)}: {done.stdout}{done.stderr}")


def tearDownModule():  # pylint: disable=invalid-name
    shutil.rmtree(Machine.place, ignore_errors=True)


class SmiCase(unittest.TestCase):
    maxDiff = None

    def answer(self, machine: str | Machine, *arguments: str, status: int = 0) -> str:
        machine = Machine.get(machine) if isinstance(machine, str) else machine
        code, out, err = machine.run(*arguments)
        self.assertEqual(err, "")
        self.assertEqual(code, status, out)
        return out


class EqualsTheRecordedH200(SmiCase):
    def compare(self, golden: str, *arguments: str):
        expected = (GOLDEN / "h200" / golden).read_text()
        self.assertEqual(normalise(self.answer("h200", *arguments)), normalise(expected))

    def test_summary(self):
        self.compare("smi.txt")

    def test_list(self):
        self.compare("smi-L.txt", "-L")

    def test_report(self):
        self.compare("smi-q.txt", "-q")

    def test_xml(self):
        self.compare("smi-q.xml", "-q", "-x")

    def test_topology(self):
        self.compare("topo.txt", "topo", "-m")

    def test_mig_profiles(self):
        self.compare("mig-lgip.txt", "mig", "-lgip")

    def test_mig_placements(self):
        self.compare("mig-lgipp.txt", "mig", "-lgipp")

    def test_compute_profiles_without_mig(self):
        self.compare("mig-lcip.txt", "mig", "-lcip")


class TablesOfOldDrivers(SmiCase):
    """Recorded in blogs that lost trailing spaces, so those are not compared; what is loaded is."""

    def compare(self, golden: str, machine: str):
        def bare(output: str) -> list[str]:
            lines = [line.rstrip() for line in output.splitlines()]
            return lines[1:] if re.match(r"^[A-Z][a-z]{2} ", lines[0]) else lines

        expected = (GOLDEN / "nvidia-smi" / golden).read_text()
        self.assertEqual(bare(self.answer(machine)), bare(expected))

    def test_384_has_no_cuda_version(self):
        self.compare("384.98-k80.txt", "k80")

    def test_430_has_cuda_but_no_mig(self):
        self.compare("430.26-k2000.txt", "k2000")

    def test_450_has_mig_rows(self):
        self.compare("450.66-k620.txt", "k620")

    def test_460_is_as_450(self):
        self.compare("460.56-k620.txt", "k620-460")

    def test_lines_are_padded_as_the_program_does(self):
        out = self.answer("k620").split("\n")
        self.assertRegex(out[0], r"^\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4} {7}$")
        self.assertIn(" " * 79, out)


class AnswersScripts(SmiCase):
    def test_csv_has_headers_with_units(self):
        out = self.answer("h200", "--query-gpu=index,name,memory.total,power.limit", "--format=csv")
        self.assertEqual(out, "index, name, memory.total [MiB], power.limit [W]\n"
                              "0, NVIDIA H200, 143771 MiB, 700.00 W\n")

    def test_csv_without_header_and_units(self):
        out = self.answer("h200", "--query-gpu=index,memory.total,fan.speed", "--format=csv,noheader,nounits")
        self.assertEqual(out, "0, 143771, [N/A]\n")

    def test_aliases_are_headed_by_their_first_name(self):
        out = self.answer("h200", "--query-gpu=gpu_name,gpu_uuid,clocks.max.sm", "--format=csv")
        self.assertTrue(out.startswith("name, uuid, clocks.max.sm [MHz]\n"), out)

    def test_every_property_listed_by_help_is_answered(self):
        names = re.findall(r'^"([^"]+)"', self.answer("h200", "--help-query-gpu"), re.M)
        self.assertGreater(len(names), 170)
        header, row, rest = self.answer("h200", "--query-gpu=" + ",".join(names), "--format=csv").split("\n")
        self.assertEqual(rest, "")
        self.assertEqual(len(header.split(", ")), len(names))
        self.assertEqual(len(row.split(", ")), len(names))

    def test_unknown_field_is_named(self):
        out = self.answer("h200", "--query-gpu=name,bogus", "--format=csv", status=2)
        self.assertEqual(out, 'Field "bogus" is not a valid field to query.\n\n')

    def test_unknown_option(self):
        out = self.answer("h200", "--bogus", status=255)
        self.assertEqual(out, "ERROR: Option --bogus is not recognized. Please run 'nvidia-smi -h'.\n\n")

    def test_xml_needs_query(self):
        self.assertIn("Invalid combination of input arguments.", self.answer("h200", "-x", status=2))

    def test_display_shows_only_what_was_asked(self):
        out = self.answer("h200", "-q", "-d", "MEMORY,COMPUTE")
        headings = re.findall(r"^ {4}(\S.*?)(?: *: .*)?$", out, re.M)
        self.assertEqual(headings, ["FB Memory Usage", "BAR1 Memory Usage", "Conf Compute Protected Memory Usage",
                                    "Compute Mode"])
        self.assertEqual(self.answer("h200", "-q", "-d", "BOGUS", status=2), "Failed to parse --display/-d flags\n")

    def test_gpus_are_chosen_by_index_uuid_and_address(self):
        names = self.answer("h200x8", "--query-gpu=index,uuid,pci.bus_id", "--format=csv,noheader").splitlines()
        self.assertEqual(len(names), 8)
        _, uuid, address = names[3].split(", ")
        for chosen in ("3", uuid, address, address[4:], "0" + address[3:]):
            out = self.answer("h200x8", "-i", chosen, "--query-gpu=index", "--format=csv,noheader")
            self.assertEqual(out, "3\n", chosen)
        out = self.answer("h200x8", "-i", "1,5", "--query-gpu=index", "--format=csv,noheader")
        self.assertEqual(out, "1\n5\n")
        self.assertEqual(self.answer("h200x8", "-i", "9", status=6), "No devices were found\n")

    def test_links_make_the_matrix(self):
        out = self.answer("h200x8", "topo", "-m")
        self.assertEqual(out.count("NV18"), 56)
        links = self.answer("h200x8", "nvlink", "-s", "-i", "0")
        self.assertEqual(links.count("26.562 GB/s"), 18)

    def test_versions(self):
        out = self.answer("h200", "--version")
        self.assertEqual(out, "NVIDIA-SMI version  : 580.159.04\nNVML version        : 580.159\n"
                              "DRIVER version      : 580.159.04\nCUDA Version        : 13.0\n")

    def test_output_goes_to_a_file(self):
        machine = Machine.get("h200")
        with tempfile.NamedTemporaryFile() as file:
            self.assertEqual(self.answer(machine, "-L", "-f", file.name), "")
            self.assertTrue(pathlib.Path(file.name).read_text().startswith("GPU 0: NVIDIA H200 (UUID: GPU-"))

    def test_processes_without_any(self):
        out = self.answer("h200", "--query-compute-apps=pid,name,used_memory", "--format=csv")
        self.assertEqual(out, "pid, process_name, used_gpu_memory [MiB]\n")


HOLDER = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
context, memory = ctypes.c_void_p(), ctypes.c_void_p()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(256 << 20)) == 0
print("ready", flush=True)
sys.stdin.read()
"""


class ShowsProcesses(SmiCase):
    def setUp(self):
        self.machine = Machine.get("h200")
        self.holder = subprocess.Popen([sys.executable, "-c", HOLDER], env={"LD_LIBRARY_PATH": self.machine.libraries},
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.assertEqual(self.holder.stdout.readline(), "ready\n")

    def tearDown(self):
        self.holder.communicate("")

    def test_who_holds_memory_and_how_much(self):
        csv = self.answer(self.machine, "--query-compute-apps=pid,used_memory,gpu_bus_id",
                          "--format=csv,noheader,nounits")
        pid, used, address = csv.strip().split(", ")
        self.assertEqual((int(pid), address), (self.holder.pid, "00000000:00:06.0"))
        self.assertGreaterEqual(int(used), 256)
        row = f"|    0   N/A  N/A {pid:>15}      C   "
        line = next(line for line in self.answer(self.machine).split("\n") if line.startswith(row))
        self.assertEqual(len(line), 91)
        self.assertTrue(line.endswith(f" {used}MiB |"), line)
        report = self.answer(self.machine, "-q", "-d", "PIDS")
        self.assertRegex(report, rf"(?m)^        Process ID {{24}}: {pid}\n            Type {{26}}: C\n")
        self.assertIn(f"<pid>{pid}</pid>", self.answer(self.machine, "-q", "-x"))

    def test_pmon_shows_them(self):
        rows = self.answer(self.machine, "pmon", "-s", "um", "-c", "1").split("\n")[2:]
        words = rows[0].split()
        self.assertEqual(words[:3], ["0", str(self.holder.pid), "C"])
        self.assertGreaterEqual(int(words[9]), 256)
        self.assertTrue(words[10].startswith("python"), words)

    def test_used_memory_counts_it(self):
        out = self.answer(self.machine, "--query-gpu=memory.used", "--format=csv,noheader,nounits")
        self.assertGreaterEqual(int(out), 256)


class ManagesMig(SmiCase):
    def test_instances_are_listed(self):
        out = self.answer("a100x8", "-L")
        self.assertRegex(out, r"(?m)^  MIG \dg\.\d+gb +Device  0: \(UUID: MIG-[0-9a-f-]{36}\)$")
        summary = self.answer("a100x8")
        self.assertIn("| MIG devices:  ", summary)
        self.assertRegex(summary, r"(?m)^\|  \d +\d+   0   0  \| +\d+MiB / +\d+MiB +\| \d+ +0 \|")
        widths = {len(line) for line in summary.split("\n")[1:] if line.startswith(("|", "+"))}
        self.assertEqual(len(widths), 1, widths)

    def test_parent_gpu_shows_no_utilisation(self):
        gpus = self.answer("a100x8", "--query-gpu=index,mig.mode.current", "--format=csv,noheader").splitlines()
        enabled = [line.split(", ")[0] for line in gpus if line.endswith(" Enabled")]
        self.assertEqual(len(enabled), 2)
        out = self.answer("a100x8", "-i", enabled[0])
        self.assertRegex(out, r"\|     N/A      Default \|\n.*Enabled \|")

    def test_instances_are_made_and_destroyed(self):
        machine = Machine("h200", "-mig")
        self.assertEqual(self.answer(machine, "-mig", "1"),
                         "Enabled MIG Mode for GPU 00000000:00:06.0\nAll done.\n")
        self.assertEqual(self.answer(machine, "mig", "-lgi", status=6), "No GPU instances found: Not Found\n")
        made = self.answer(machine, "mig", "-cgi", "19,3g.71gb", "-C").splitlines()
        self.assertRegex(made[0], r"^Successfully created GPU instance ID +\d+ on GPU  0 using profile MIG 1g.18gb \(ID 19\)$")
        self.assertRegex(made[1], r"^Successfully created compute instance ID  0 on GPU  0 GPU instance ID +\d+ "
                                  r"using profile MIG 1g.18gb \(ID  0\)$")
        self.assertRegex(made[3], r"using profile MIG 3g.71gb \(ID  2\)$")
        self.assertEqual(self.answer(machine, "-L").count("\n  MIG "), 2)
        self.assertEqual(self.answer(machine, "mig", "-lci").count("\n|   0 "), 2)
        full = self.answer(machine, "mig", "-cgi", "0", status=23)
        self.assertEqual(full, "Unable to create a GPU instance on GPU  0 using profile 0: Insufficient Resources\n"
                               "Failed to create GPU instances: Insufficient Resources\n")
        self.assertEqual(self.answer(machine, "mig", "-dci").count("Successfully destroyed compute instance"), 2)
        self.assertEqual(self.answer(machine, "mig", "-dgi").count("Successfully destroyed GPU instance"), 2)
        self.assertEqual(self.answer(machine, "-mig", "0"),
                         "Disabled MIG Mode for GPU 00000000:00:06.0\nAll done.\n")

    def test_compute_instances_have_placements(self):
        machine = Machine("h200", "-placed")
        self.answer(machine, "-mig", "1")
        self.answer(machine, "mig", "-cgi", "9:4,2g.35gb:0")
        self.assertRegex(self.answer(machine, "mig", "-lgi"), r"MIG 3g.71gb +9 +2 +4:4 ")
        self.assertEqual(self.answer(machine, "mig", "-lcipp", "-gi", "2"),
                         "GPU  0 GI  2 Profile ID  0 Placements: {0,1,2}:1\n"
                         "GPU  0 GI  2 Profile ID  1 Placement : {0}:2\n"
                         "GPU  0 GI  2 Profile ID  2 Placement : {0}:3\n")
        self.answer(machine, "mig", "-cci", "1c.3g.71gb:2,1:0", "-gi", "2", "-i", "0")
        listed = self.answer(machine, "mig", "-lci", "-gi", "2")
        self.assertRegex(listed, r"MIG 1c.3g.71gb +0 +0 +2:1 ")
        self.assertRegex(listed, r"MIG 2c.3g.71gb +1 +1 +0:2 ")
        refused = self.answer(machine, "mig", "-cci", "0:1", "-gi", "2", status=23)
        self.assertIn("Insufficient Resources", refused)
        self.answer(machine, "mig", "-dci", "-gi", "2", "-ci", "0")
        self.assertEqual(self.answer(machine, "mig", "-dgi", "-gi", "2", status=19),
                         "Unable to destroy GPU instance ID  2 from GPU  0: In use by another client\n"
                         "Failed to destroy GPU instances: In use by another client\n")

    def test_profiles_of_a_card_with_four_slices(self):
        self.assertEqual(self.answer("rtxpro6000x2", "mig", "-lgipp", "-i", "0").splitlines()[:2],
                         ["GPU  0 Profile ID 14 Placements: {0,3,6,9}:3", "GPU  0 Profile ID 21 Placements: {0,3,6,9}:3"])
        self.assertRegex(self.answer("rtxpro6000x2", "mig", "-lgip"), r"MIG 4g.96gb +0 +1/1 +95.12 +No +188 +4 +4 ")

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to become somebody else")
    def test_others_than_root_may_not(self):
        machine = Machine("h200", "-others")
        os.chmod(Machine.place, 0o755)
        code, out, _ = machine.run("-mig", "1", user=65534)
        self.assertEqual(out, "Unable to enable MIG Mode for GPU 00000000:00:06.0: Insufficient Permissions\n"
                              "Terminating early due to previous errors.\n")
        self.assertEqual(code, 4)


BUS = "00000000:00:06.0"


@unittest.skipUnless(os.geteuid() == 0, "changes need root")
class ChangesSettings(SmiCase):
    """They persist in the machine, and a new kernel module forgets them."""

    def setUp(self):
        self.machine = Machine("h200", "-" + self._testMethodName)

    def value(self, *fields: str) -> list[str]:
        return self.answer(self.machine, "--query-gpu=" + ",".join(fields), "--format=csv,noheader,nounits").strip().split(", ")

    def test_persistence_mode(self):
        self.assertEqual(self.answer(self.machine, "-pm", "1"), f"Persistence mode is already Enabled for GPU {BUS}.\nAll done.\n")
        self.assertEqual(self.answer(self.machine, "-pm", "0"), f"Disabled persistence mode for GPU {BUS}.\nAll done.\n")
        self.assertEqual(self.value("persistence_mode"), ["Disabled"])
        self.assertEqual(self.answer(self.machine, "-pm", "1"), f"Enabled persistence mode for GPU {BUS}.\nAll done.\n")
        self.assertEqual(self.value("persistence_mode"), ["Enabled"])

    def test_compute_mode_and_what_cuda_makes_of_it(self):
        self.assertEqual(self.answer(self.machine, "-c", "3"), f"Set compute mode to EXCLUSIVE_PROCESS for GPU {BUS}.\nAll done.\n")
        self.assertEqual(self.value("compute_mode"), ["Exclusive_Process"])
        self.assertIn("E. Process", self.answer(self.machine))
        self.assertEqual(self.answer(self.machine, "-c", "EXCLUSIVE_PROCESS"),
                         f"Compute mode is already set to EXCLUSIVE_PROCESS for GPU {BUS}.\nAll done.\n")
        first, second = (subprocess.Popen([sys.executable, "-c", HOLDER], env={"LD_LIBRARY_PATH": self.machine.libraries}, stdin=subprocess.PIPE,
                                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) for _ in range(2))
        ready = sorted((first.stdout.readline(), second.stdout.readline()))
        first.communicate("")
        second.communicate("")
        self.assertEqual(ready, ["", "ready\n"])
        self.assertEqual(self.answer(self.machine, "-c", "PROHIBITED").splitlines()[0], f"Set compute mode to PROHIBITED for GPU {BUS}.")
        refused = subprocess.run([sys.executable, "-c", HOLDER], env={"LD_LIBRARY_PATH": self.machine.libraries}, capture_output=True)
        self.assertNotEqual(refused.returncode, 0)

    def test_power_limit(self):
        self.assertEqual(self.answer(self.machine, "-pl", "500"), f"Power limit for GPU {BUS} was set to 500.00 W from 700.00 W.\nAll done.\n")
        self.assertEqual(self.value("power.limit", "enforced.power.limit", "power.default_limit"), ["500.00", "500.00", "700.00"])
        out = self.answer(self.machine, "-pl", "9000", status=2)
        self.assertEqual(out, "Provided power limit 9000.00 W is not a valid power limit which should be between 200.00 W and 700.00 W "
                              f"for GPU {BUS}\nTerminating early due to previous errors.\n")
        self.answer(self.machine, "-pm", "0")
        self.assertIn(f"Warning: persistence mode is disabled on device {BUS}.", self.answer(self.machine, "-pl", "600"))

    def test_locked_clocks(self):
        self.assertEqual(self.answer(self.machine, "-lgc", "1410"), f'GPU clocks set to "(gpuClkMin 1410, gpuClkMax 1410)" for GPU {BUS}\nAll done.\n')
        self.assertEqual(self.value("clocks.sm", "clocks.gr"), ["1410", "1410"])
        self.assertIn("(gpuClkMin 300, gpuClkMax 600)", self.answer(self.machine, "--lock-gpu-clocks=300,600"))
        self.assertEqual(self.answer(self.machine, "-rgc"), "All done.\n")
        self.assertEqual(self.value("clocks.sm"), self.answer("h200", "--query-gpu=clocks.sm", "--format=csv,noheader,nounits").split())
        self.assertIn("(memClkMin 1593, memClkMax 1593)", self.answer(self.machine, "-lmc", "1593"))
        self.assertEqual(self.value("clocks.mem"), ["1593"])
        self.assertIn("Invalid clock range: fast", self.answer(self.machine, "-lgc", "fast", status=2))

    def test_old_cards_have_no_locked_clocks(self):
        out = self.answer(Machine("k80", "-" + self._testMethodName), "-i", "0", "-lgc", "800")
        self.assertRegex(out, r"^Setting locked GPU clocks is not supported for GPU \S+.\nTreating as warning and moving on.\nAll done.\n$")

    def test_a_drained_gpu_takes_no_new_clients(self):
        machine = Machine("h200x8", "-" + self._testMethodName)
        drain = ("drain", "-p", "0000:18:00.0")
        self.assertEqual(self.answer(machine, *drain, "-q"), "The current drain state of GPU 00000000:18:00.0 is: not draining.\n")
        self.assertIn("In use", self.answer(machine, *drain, "-m", "1", status=19))  # persistence mode holds it
        self.answer(machine, "-i", "0", "-pm", "0")
        self.assertEqual(self.answer(machine, *drain, "-m", "1"), "Successfully set GPU 00000000:18:00.0 drain state to: draining.\n")
        self.assertEqual(self.answer(machine, "-L").count("GPU "), 7)
        self.assertEqual(self.answer(machine, *drain, "-q"), "The current drain state of GPU 00000000:18:00.0 is: draining.\n")
        self.assertEqual(self.answer(machine, *drain, "-m", "0"), "Successfully set GPU 00000000:18:00.0 drain state to: not draining.\n")
        self.assertEqual(self.answer(machine, "-L").count("GPU "), 8)
        self.assertIn("drain -h", self.answer(machine, "drain", "-m", "1", status=2))

    def test_a_new_kernel_module_forgets_them(self):
        for words in (("-pl", "500"), ("-c", "2"), ("-lgc", "1410")):
            self.answer(self.machine, *words)
        self.machine.inject("unload")
        self.machine.inject("load")
        self.assertEqual(self.value("power.limit", "compute_mode"), ["700.00", "Default"])

    def test_others_than_root_may_not(self):
        os.chmod(Machine.place, 0o755)
        words = {"-pm": ("0", f"Unable to set persistence mode for GPU {BUS}: Insufficient Permissions\n"),
                 "-c": ("3", f"Unable to set the compute mode for GPU {BUS}: Insufficient Permissions\n"),
                 "-pl": ("500", f"Failed to set power management limit for GPU {BUS}: Insufficient Permissions\n"),
                 "-lgc": ("1410", f"The current user does not have permission to change clocks for GPU {BUS}.\n")}
        for option, (value, text) in words.items():
            code, out, _ = self.machine.run(option, value, user=65534)
            self.assertEqual((code, out), (4, text + "Terminating early due to previous errors.\n"))


class Monitors(SmiCase):
    def test_a_row_for_each_gpu(self):
        out = self.answer("h200x8", "dmon", "-c", "1").split("\n")
        self.assertEqual(out[:2], ["# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk ",
                                   "# Idx      W      C      C      %      %      %      %      %      %    MHz    MHz "])
        self.assertEqual(len(out), 11)
        for index, row in enumerate(out[2:10]):
            self.assertRegex(row, rf"^ {{4}}{index}(?: +(?:\d+|-)){{11}} $")
            self.assertEqual(len(row), len(out[0]))

    def test_columns_are_chosen(self):
        out = self.answer("h200", "dmon", "-s", "vmet", "-c", "1", "-i", "0").split("\n")
        self.assertEqual(out[:2], ["# gpu  pviol  tviol     fb   bar1   ccpm  sbecc  dbecc    pci  rxpci  txpci ",
                                   "# Idx      %   bool     MB     MB     MB   errs   errs   errs   MB/s   MB/s "])
        self.assertIn("dmon -h", self.answer("h200", "dmon", "-s", "xyz", status=2))

    def test_rows_can_have_their_time_and_go_to_a_file(self):
        with tempfile.NamedTemporaryFile() as file:
            self.assertEqual(self.answer("h200", "dmon", "-o", "DT", "-s", "p", "-c", "1", "-f", file.name), "")
            lines = pathlib.Path(file.name).read_text().split("\n")
        self.assertRegex(lines[0], r"^#Date +Time +gpu +pwr +gtemp +mtemp $")
        self.assertRegex(lines[1], r"^#YYYYMMDD +HH:MM:SS +Idx +W +C +C $")
        self.assertRegex(lines[2], r"^ \d{8} +\d\d:\d\d:\d\d +0 ")

    def test_old_drivers_have_fewer_columns(self):
        out = self.answer("k80", "dmon", "-c", "1").split("\n")
        self.assertEqual(out[0], "# gpu   pwr gtemp mtemp    sm   mem   enc   dec  mclk  pclk")

    def test_a_gpu_without_processes_is_a_row_of_dashes(self):
        out = self.answer("h200", "pmon", "-c", "1").split("\n")
        self.assertEqual(out[:2], ["# gpu         pid   type     sm    mem    enc    dec    jpg    ofa    command",
                                   "# Idx           #    C/G      %      %      %      %      %      %    name"])
        self.assertEqual(out[2].split(), ["0"] + ["-"] * 9)

    def test_no_machine_hosts_vgpus(self):
        for words in ((), ("-q",), ("-s",)):
            self.assertEqual(self.answer("h200", "vgpu", *words), "No supported devices in vGPU mode\n")


class SaysWhatIsWrong(SmiCase):
    def test_no_library(self):
        code, out, _ = Machine.get("h200").run(libraries="/nonexistent")
        self.assertEqual(code, 12)
        self.assertTrue(out.startswith("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system."), out)

    def test_driver_not_loaded(self):
        out = self.answer("secure-boot", status=9)
        self.assertEqual(out, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make "
                              "sure that the latest NVIDIA driver is installed and running.\n\n")

    def test_versions_differ(self):
        out = self.answer("mismatch", status=18)
        self.assertRegex(out, r"^Failed to initialize NVML: Driver/library version mismatch\n"
                              r"NVML library version: \d+\.\d+\n$")

    def test_gpu_lost(self):
        out = self.answer("fallen-off", status=15)
        self.assertRegex(out, r"Unable to determine the device handle for GPU\d: 0000:[0-9A-F]{2}:00.0: "
                              r"GPU is lost.  Reboot the system to recover this GPU\n")

    def test_a_list_with_a_lost_gpu_is_no_success(self):
        out = self.answer("fallen-off", "-L", status=15)
        self.assertIn("GPU is lost.  Reboot the system to recover this GPU\n", out)
        self.assertIn("GPU 0: ", out)

    @unittest.skipUnless(os.geteuid() == 0, "resets need root")
    def test_a_reset_makes_a_gpu_compute_again(self):
        machine = Machine("h200x8", "reset")
        machine.inject("xid", "95", "--gpu", "2")
        self.assertIn("Drain and Reset", self.answer(machine, "-q", "-i", "2"))
        out = self.answer(machine, "--gpu-reset", "-i", "2")
        self.assertRegex(out, r"^GPU 00000000:[0-9A-F]{2}:00.0 was successfully reset.\nAll done.\n$")
        self.assertNotIn("Drain and Reset", self.answer(machine, "-q", "-i", "2"))

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to become somebody else")
    def test_a_reset_needs_root(self):
        machine = Machine.get("h200x8")
        os.chmod(Machine.place, 0o755)
        code, out, _ = machine.run("-r", "-i", "0", user=65534)
        self.assertEqual(code, 4)
        self.assertIn("could not be reset:\n  GPU 00000000:18:00.0: Insufficient Permissions\n", out)


if __name__ == "__main__":
    unittest.main(verbosity=2)
