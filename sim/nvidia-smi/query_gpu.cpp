// SPDX-License-Identifier: Apache-2.0
//
// nvidia-smi --query-gpu=... --format=csv
#include "sim/nvidia-smi/commands.hpp"
#include "sim/nvidia-smi/csv.hpp"
#include "sim/nvidia-smi/query_gpu_table.hpp"

namespace smi {
namespace {

const Property* find_gpu_property(const char* name) {
  const Properties all = gpu_properties();
  for (size_t i = 0; i < all.count; ++i) {
    const Property& row = all.rows[i];
    if (strcmp(row.name, name) == 0 || (row.alias != nullptr && strcmp(row.alias, name) == 0))
      return &row;
  }
  return nullptr;
}

// A unit that readings have but columns do not show.
bool is_hidden(const char* unit) {
  return strcmp(unit, "-") == 0 || strcmp(unit, "x") == 0;
}

void show_gpu_header(const char* fields) {
  Text name;
  for (bool first = true; next_item(&fields, name); first = false) {
    const Property* row = find_gpu_property(name.c_str());
    printf("%s%s", first ? "" : ", ", row->name);
    if (row->unit[0] != '\0' && !is_hidden(row->unit)) printf(" [%s]", row->unit);
  }
  putchar('\n');
}

Text cell(const Gpu& gpu, const Property& row, bool units) {
  Text value;
  row.read(gpu, row.arg, value);
  // "16x" has no space to cut at.
  char* suffix = strcmp(row.unit, "x") == 0 ? strchr(value.data(), 'x') : nullptr;
  if (suffix != nullptr) *suffix = '\0';
  const bool is_text = row.unit[0] == '\0';
  const bool old_words = !gpu.session->at_least(450);
  if (old_words && row.bracket && value.is(kNotAvailable)) value.set("[Not Supported]");
  if (value.is("[Not Supported]")) return value;
  return csv_cell(value, is_text || (units && !is_hidden(row.unit)), row.bracket);
}

void show_gpu_row(const Gpu& gpu, const char* fields, bool units) {
  Text name;
  for (bool first = true; next_item(&fields, name); first = false) {
    printf("%s%s", first ? "" : ", ", cell(gpu, *find_gpu_property(name.c_str()), units).c_str());
  }
  putchar('\n');
}

}  // namespace

bool known_gpu_fields(const char* fields) {
  Text name;
  while (next_item(&fields, name)) {
    if (find_gpu_property(name.c_str()) != nullptr) continue;
    explain_unknown_field(name.c_str());
    return false;
  }
  return true;
}

bool known_format(const char* format) {
  CsvFormat ignored;
  if (parse_format(format, ignored)) return true;
  puts("Format modifier is not recognized.");
  return false;
}

int query_gpu(Session& session, const char* fields, const char* format) {
  CsvFormat form;
  parse_format(format, form);
  if (form.header) show_gpu_header(fields);
  for (unsigned i = 0; i < session.count; ++i) show_gpu_row(session.gpus[i], fields, form.units);
  return kDone;
}

void help_query_gpu() {
  puts("List of valid properties to query for the switch \"--query-gpu\":\n");
  const Properties all = gpu_properties();
  for (size_t i = 0; i < all.count; ++i) {
    const Property& row = all.rows[i];
    printf("\"%s\"", row.name);
    if (row.alias != nullptr) printf(" or \"%s\"", row.alias);
    printf("\n%s%s\n", row.about, row.about[0] != '\0' ? "\n" : "");
  }
}

}  // namespace smi
