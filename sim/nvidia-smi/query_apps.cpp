// SPDX-License-Identifier: Apache-2.0
//
// nvidia-smi --query-compute-apps=... --format=csv
#include "sim/nvidia-smi/commands.hpp"
#include "sim/nvidia-smi/csv.hpp"
#include "sim/nvidia-smi/processes.hpp"
#include "sim/nvidia-smi/readings.hpp"

namespace smi {
namespace {

struct AppProperty {
  const char* name;
  const char* alias;
  const char* unit;
  Read read;  // of the GPU; null: of the process
  const char* about;
};

constexpr AppProperty kAppProperties[] = {
    {"timestamp", nullptr, "", timestamp, "When the query was made, \"YYYY/MM/DD HH:MM:SS.msec\"."},
    {"gpu_name", nullptr, "", product_name, "Product name of the GPU."},
    {"gpu_bus_id", nullptr, "", nullptr, "PCI address, \"domain:bus:device.function\" in hex."},
    {"gpu_serial", nullptr, "", serial, "Serial number printed on the board."},
    {"gpu_uuid", nullptr, "", uuid, "Globally unique identifier of the GPU."},
    {"pid", nullptr, "", nullptr, "Process id of the compute application."},
    {"process_name", "name", "", nullptr, "Name of the process."},
    {"used_gpu_memory", "used_memory", "MiB", nullptr, "Memory its context holds on the GPU."},
};

const AppProperty* find_app_property(const char* name) {
  for (const AppProperty& row : kAppProperties) {
    if (strcmp(row.name, name) == 0 || (row.alias != nullptr && strcmp(row.alias, name) == 0))
      return &row;
  }
  return nullptr;
}

Text read_value(const Gpu& gpu, const Process& process, const AppProperty& row) {
  Text out;
  if (row.read != nullptr) {
    row.read(gpu, {}, out);
  } else if (strcmp(row.name, "pid") == 0) {
    out.set("%u", process.pid);
  } else if (strcmp(row.name, "process_name") == 0) {
    out.set("%s", process.name.c_str());
  } else if (strcmp(row.name, "gpu_bus_id") == 0) {
    out.set("%s", gpu.bus_id);
  } else {
    out.set("%s", process.memory.c_str());
  }
  return out;
}

void show_app_row(const Gpu& gpu, const Process& process, const char* fields, bool units) {
  Text name;
  for (bool first = true; next_item(&fields, name); first = false) {
    const AppProperty& row = *find_app_property(name.c_str());
    const Text value = read_value(gpu, process, row);
    printf("%s%s", first ? "" : ", ", csv_cell(value, units || row.unit[0] == '\0', true).c_str());
  }
  putchar('\n');
}

void show_app_header(const char* fields) {
  Text name;
  for (bool first = true; next_item(&fields, name); first = false) {
    const AppProperty* row = find_app_property(name.c_str());
    printf("%s%s", first ? "" : ", ", row->name);
    if (row->unit[0] != '\0') printf(" [%s]", row->unit);
  }
  putchar('\n');
}

}  // namespace

bool known_app_fields(const char* fields) {
  Text name;
  while (next_item(&fields, name)) {
    if (find_app_property(name.c_str()) != nullptr) continue;
    explain_unknown_field(name.c_str());
    return false;
  }
  return true;
}

int query_apps(Session& session, const char* fields, const char* format) {
  CsvFormat form;
  parse_format(format, form);
  if (form.header) show_app_header(fields);
  for (unsigned i = 0; i < session.count; ++i) {
    Processes processes;
    read_processes(session.gpus[i], Contexts::Compute, processes);
    for (unsigned p = 0; p < processes.count; ++p) {
      show_app_row(session.gpus[i], processes.rows[p], fields, form.units);
    }
  }
  return kDone;
}

void help_query_apps() {
  puts("List of valid properties to query for the switch \"--query-compute-apps\":\n");
  for (const AppProperty& row : kAppProperties) {
    printf("\"%s\"", row.name);
    if (row.alias != nullptr) printf(" or \"%s\"", row.alias);
    printf("\n%s\n\n", row.about);
  }
}

}  // namespace smi
