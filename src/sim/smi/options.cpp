// SPDX-License-Identifier: Apache-2.0
#include "sim/smi/options.hpp"

#include "sim/smi/session.hpp"

namespace smi {
namespace {

constexpr unsigned kDefaultLoopSeconds = 5;

struct Flag {
  const char* brief;
  const char* full;
  bool Options::*slot;
};

constexpr Flag kFlags[] = {
    {"-h", "--help", &Options::help},
    {"--version", "--version", &Options::version},
    {"-L", "--list-gpus", &Options::list},
    {"-B", "--list-excluded-gpus", &Options::list_excluded},
    {"-q", "--query", &Options::query},
    {"-x", "--xml-format", &Options::xml},
    {"--help-query-gpu", "--help-query-gpu", &Options::help_query_gpu},
    {"--help-query-compute-apps", "--help-query-compute-apps", &Options::help_query_apps},
};

struct Value {
  const char* brief;
  const char* full;
  const char* Options::*slot;
};

constexpr Value kValues[] = {
    {"-i", "--id", &Options::ids},
    {"-d", "--display", &Options::display},
    {"-f", "--filename", &Options::file},
    {"--query-gpu", "--query-gpu", &Options::query_gpu},
    {"--query-compute-apps", "--query-compute-apps", &Options::query_apps},
    {"--format", "--format", &Options::format},
    {"-pm", "--persistence-mode", &Options::persistence},
    {"-c", "--compute-mode", &Options::compute_mode},
    {"-mig", "--multi-instance-gpu", &Options::mig_mode},
};

bool is(const Text& name, const char* brief, const char* full) {
  return name.is(brief) || name.is(full);
}

int refuse(const char* option) {
  printf("ERROR: Option %s is not recognized. Please run 'nvidia-smi -h'.\n\n", option);
  return kUnknownOption;
}

bool set_flag(const Text& name, Options& out) {
  for (const Flag& flag : kFlags) {
    if (!is(name, flag.brief, flag.full)) continue;
    out.*flag.slot = true;
    return true;
  }
  return false;
}

const Value* find_value(const Text& name) {
  for (const Value& value : kValues) {
    if (is(name, value.brief, value.full)) return &value;
  }
  return nullptr;
}

// -l may stand alone.
bool set_loop(const Text& name, const char* value, Options& out) {
  const bool seconds = is(name, "-l", "--loop");
  unsigned number = seconds ? kDefaultLoopSeconds : 0;
  if (value != nullptr && (!parse_number(value, &number) || number > 1000000)) return false;
  out.loop_ms = seconds ? number * 1000 : number;
  return out.loop_ms != 0;
}

int check(const Options& options) {
  if (options.xml && !options.query) {
    puts(
        "Invalid combination of input arguments. Specify -q/--query and -x/--xml-format to run an "
        "XML query.  "
        "Please run 'nvidia-smi -h' for help.\n");
    return kUsage;
  }
  if (options.list && options.ids != nullptr) {
    puts("ERROR: Option -i is not valid for this command. Please run 'nvidia-smi -h' for help.\n");
    return kUsage;
  }
  return kDone;
}

}  // namespace

int parse_options(int argc, char** argv, Options& out) {
  for (int i = 1; i < argc; ++i) {
    Text name;
    const char* equals = strchr(argv[i], '=');
    name.set("%.*s", static_cast<int>(equals != nullptr ? equals - argv[i] : 250), argv[i]);
    const char* next = i + 1 < argc ? argv[i + 1] : nullptr;
    if (set_flag(name, out)) continue;
    if (const Value* value = find_value(name)) {
      if (equals == nullptr && next == nullptr) {
        printf("ERROR: Option %s requires an argument. Please run 'nvidia-smi -h' for help.\n\n",
               argv[i]);
        return kUsage;
      }
      out.*value->slot = equals != nullptr ? equals + 1 : argv[++i];
      continue;
    }
    if (!is(name, "-l", "--loop") && !is(name, "-lms", "--loop-ms")) return refuse(argv[i]);
    const bool takes_next = equals == nullptr && next != nullptr && next[0] != '-';
    if (!set_loop(name, equals != nullptr ? equals + 1 : takes_next ? next : nullptr, out)) {
      return refuse(argv[i]);
    }
    if (takes_next) ++i;
  }
  return check(out);
}

}  // namespace smi
