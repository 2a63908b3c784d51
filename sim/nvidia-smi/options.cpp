// SPDX-License-Identifier: Apache-2.0
#include "sim/nvidia-smi/options.hpp"

#include "sim/nvidia-smi/session.hpp"

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
    {"-r", "--gpu-reset", &Options::reset},
    {"-rgc", "--reset-gpu-clocks", &Options::reset_gpu_clocks},
    {"-rmc", "--reset-memory-clocks", &Options::reset_memory_clocks},
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
    {"-pl", "--power-limit", &Options::power_limit},
    {"-lgc", "--lock-gpu-clocks", &Options::gpu_clocks},
    {"-lmc", "--lock-memory-clocks", &Options::memory_clocks},
};

bool is(const Text& name, const char* brief, const char* full) {
  return name.is(brief) || name.is(full);
}

int refuse_option(const char* option) {
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

// One argument: "--name=value", or "-n" with the value in the next argument.
struct Argument {
  Text name;
  const char* attached = nullptr;  // after '='
  const char* next = nullptr;      // the argument after this one
};

Argument split(const char* text, const char* next) {
  Argument out;
  const char* equals = strchr(text, '=');
  out.name.set("%.*s", static_cast<int>(equals != nullptr ? equals - text : 250), text);
  out.attached = equals != nullptr ? equals + 1 : nullptr;
  out.next = next;
  return out;
}

// -l may have no value. Returns the number of arguments, 0 for an error.
int set_loop(const Argument& argument, Options& out) {
  const bool seconds = is(argument.name, "-l", "--loop");
  if (!seconds && !is(argument.name, "-lms", "--loop-ms")) return 0;
  const bool takes_next =
      argument.attached == nullptr && argument.next != nullptr && argument.next[0] != '-';
  const char* value = takes_next ? argument.next : argument.attached;
  unsigned number = seconds ? kDefaultLoopSeconds : 0;
  if (value != nullptr && (!parse_number(value, &number) || number > 1000000)) return 0;
  out.loop_ms = seconds ? number * 1000 : number;
  if (out.loop_ms == 0) return 0;
  return takes_next ? 2 : 1;
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
  for (int i = 1; i < argc && argv[i] != nullptr;) {
    const Argument argument = split(argv[i], i + 1 < argc ? argv[i + 1] : nullptr);
    int taken = set_flag(argument.name, out) ? 1 : 0;
    if (const Value* value = find_value(argument.name)) {
      out.*value->slot = argument.attached != nullptr ? argument.attached : argument.next;
      if (out.*value->slot == nullptr) {
        printf("ERROR: Option %s requires an argument. Please run 'nvidia-smi -h' for help.\n\n",
               argv[i]);
        return kUsage;
      }
      taken = argument.attached != nullptr ? 1 : 2;
    }
    if (taken == 0) taken = set_loop(argument, out);
    if (taken == 0) return refuse_option(argv[i]);
    i += taken;
  }
  return check(out);
}

}  // namespace smi
