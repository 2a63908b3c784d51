// SPDX-License-Identifier: Apache-2.0
#include "sim/nvidia-smi/commands.hpp"

namespace smi {

void show_help(const char* version) {
  printf("NVIDIA System Management Interface -- v%s\n\n", version);
  fputs(
      "This is the nvidia-smi of Gantry's simulated driver: the GPUs it shows do not exist.\n"
      "\n"
      "nvidia-smi [OPTION1 [ARG1]] [OPTION2 [ARG2]] ...\n"
      "\n"
      "    -h,   --help                This text.\n"
      "          --version             Versions of this program, NVML, the driver and CUDA.\n"
      "\n"
      "  LIST\n"
      "    -L,   --list-gpus           The GPUs and their MIG devices, with UUIDs.\n"
      "    -B,   --list-excluded-gpus  GPUs the driver was told to leave alone.\n"
      "\n"
      "  SUMMARY\n"
      "    <no arguments>              A table of the GPUs and the processes on them.\n"
      "    -i,   --id=                 Only these GPUs: index, UUID, serial or PCI address.\n"
      "    -f,   --filename=           Write to a file.\n"
      "    -l,   --loop=               Again every so many seconds (-lms: milliseconds).\n"
      "\n"
      "  QUERY\n"
      "    -q,   --query               Everything about the GPUs.\n"
      "    -x,   --xml-format          As XML.\n"
      "    -d,   --display=            Only: MEMORY, UTILIZATION, ECC, TEMPERATURE, POWER, CLOCK, "
      "COMPUTE,\n"
      "                                PIDS, PERFORMANCE, SUPPORTED_CLOCKS, PAGE_RETIREMENT, "
      "ACCOUNTING,\n"
      "                                ENCODER_STATS, FBC_STATS, ROW_REMAPPER, "
      "GSP_FIRMWARE_VERSION, ...\n"
      "    --query-gpu=                Chosen properties as CSV; --help-query-gpu lists them.\n"
      "    --query-compute-apps=       Processes as CSV; --help-query-compute-apps lists the "
      "columns.\n"
      "    --format=                   csv[,noheader][,nounits]\n"
      "\n"
      "  MODIFY (root)\n"
      "    -r,   --gpu-reset           Reset the GPUs named with -i, or all.\n"
      "    -pm,  --persistence-mode=   0/DISABLED, 1/ENABLED\n"
      "    -c,   --compute-mode=       0/DEFAULT, 1/EXCLUSIVE_THREAD, 2/PROHIBITED, "
      "3/EXCLUSIVE_PROCESS\n"
      "    -mig, --multi-instance-gpu= 0/DISABLED, 1/ENABLED\n"
      "    -pl,  --power-limit=        Watts.\n"
      "    -lgc, --lock-gpu-clocks=    MHz, or lowest,highest; -rgc unlocks.\n"
      "    -lmc, --lock-memory-clocks= MHz, or lowest,highest; -rmc unlocks.\n"
      "\n"
      "  TOPICS\n"
      "    topo -m                     How the GPUs reach each other.\n"
      "    nvlink -s                   State of each NVLink.\n"
      "    mig                         MIG profiles and instances; \"nvidia-smi mig -h\".\n"
      "    dmon, pmon                  Numbers of GPUs or processes, a row each second.\n"
      "    drain                       A GPU takes no new clients.\n"
      "    vgpu                        vGPUs that this machine hosts: none.\n",
      stdout);
}

}  // namespace smi
