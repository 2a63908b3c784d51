// SPDX-License-Identifier: Apache-2.0
// gantry sim inject and gantry sim state: inject faults at run time, show them and clear them.
#include "base/json/writer.hpp"
#include "base/sys/shell_command.hpp"
#include "gantry/sim_commands.hpp"
#include "gantry/table.hpp"
#include "sim/machine/inject.hpp"
#include "sim/machine/mig.hpp"
#include "sim/machine/state_file.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>

namespace gantry::cli {
namespace {

struct InjectOptions {
  std::uint32_t gpu = 0;
  std::uint32_t xid = 0;
  std::int32_t celsius = 0;
  sim::EccErrors ecc;
  sim::Fault fault;
  std::vector<std::string> layout;
  bool off = false;
  sim::ClearScope what = sim::ClearScope::Everything;
  std::optional<std::uint32_t> only;
};

using Options = std::shared_ptr<InjectOptions>;
// Prints one line about what was done.
using Work =
    std::function<Result<std::string>(const std::string& root, const InjectOptions& options)>;

Result<std::string> said(const Status& status, std::string line) {
  if (!status.ok()) return status.error();
  return line;
}

// The state of the GPU after the injection.
std::string condition_of(const std::string& root, std::uint32_t gpu) {
  const auto file = sim::StateFile::look(root);
  if (!file.ok() || gpu >= file->machine().gpu_count) return "";
  const auto& now = file->state().gpu[gpu];
  if (now.lost != 0) return "it is off the bus";
  if (now.reset_required != 0)
    return fmt::format(
        "it does not compute until `gantry sim run{} -- nvidia-smi --gpu-reset -i {}`",
        sys::root_flag(root), gpu);
  return "it keeps working";
}

Result<std::string> inject_xid(const std::string& root, std::uint32_t gpu, std::uint32_t xid) {
  GANTRY_CHECK(sim::inject_xid(root, gpu, xid));
  return fmt::format("GPU {}: Xid {}; {}", gpu, xid, condition_of(root, gpu));
}

std::string delay_word(std::uint32_t delay_ms) {
  if (delay_ms == GANTRY_SIM_HANG) return "hangs until the fault is cleared";
  return fmt::format("waits {} ms", delay_ms);
}

std::string_view action_word(std::uint32_t action) {
  switch (action) {
    case GANTRY_SIM_FAULT_LOSE: return "the GPU falls off the bus";
    case GANTRY_SIM_FAULT_DESTROY: return "somebody else destroys the GPU's MIG instances";
    default: return "";
  }
}

std::string fault_line(const sim::Fault& fault) {
  std::vector<std::string> parts;
  if (fault.delay_ms != 0) parts.push_back(delay_word(fault.delay_ms));
  if (fault.action != GANTRY_SIM_FAULT_ONLY) parts.emplace_back(action_word(fault.action));
  if (fault.result != 0) parts.push_back(fmt::format("returns {}", fault.result));
  if (parts.empty()) parts.emplace_back("returns its normal answer");
  auto text = fmt::format("{}: {}", fault.function, fmt::join(parts, " and "));
  if (fault.every > 1) text += fmt::format(", once in {} calls", fault.every);
  if (fault.call != 0) text += fmt::format(", in call {} from now", fault.call);
  return text;
}

Result<std::string> inject_mig(const std::string& root, const InjectOptions& options) {
  if (options.off) {
    return said(sim::inject_mig(root, options.gpu, std::nullopt),
                fmt::format("GPU {}: MIG is off", options.gpu));
  }
  std::vector<sim::MigRequest> layout;
  for (const auto& text : options.layout) {
    const auto request = sim::parse_mig_request(text);
    if (!request) {
      return Error(
          Errc::Invalid,
          fmt::format("\"{}\" is not a MIG instance; write 3g.20gb, 3g.20gb@4 or 3g.20gb=1+2",
                      text));
    }
    layout.push_back(*request);
  }
  return said(sim::inject_mig(root, options.gpu, layout),
              fmt::format("GPU {}: MIG is on, {}", options.gpu,
                          layout.empty() ? "without instances"
                                         : fmt::format("{}", fmt::join(options.layout, " "))));
}

class InjectCommands {
 public:
  InjectCommands(CLI::App& inject, Action& chosen) : inject_(inject), chosen_(chosen) {}

  CLI::App* add(const std::string& name, const std::string& help, const Options& options,
                const Work& work) {
    auto* command = inject_.add_subcommand(name, help);
    command->fallthrough();  // --root is also accepted after the fault's name
    command->callback([=, &chosen = chosen_] {
      chosen = [=](Context& context) -> Result<int> {
        GANTRY_TRY(const std::string line, work(context.root, *options));
        fmt::print(context.out, "{}\n", line);
        return kOk;
      };
    });
    return command;
  }

  CLI::App* add_for_gpu(const std::string& name, const std::string& help, const Options& options,
                        const Work& work) {
    auto* command = add(name, help, options, work);
    command->add_option("--gpu", options->gpu, "Index of the GPU")
        ->capture_default_str()
        ->type_name("N");
    return command;
  }

 private:
  CLI::App& inject_;
  Action& chosen_;
};

void add_gpu_faults(InjectCommands& commands, const Options& options) {
  commands
      .add_for_gpu("xid", "The kernel driver reports an error, with its effect on the GPU", options,
                   [](const auto& root, const auto& o) { return inject_xid(root, o.gpu, o.xid); })
      ->add_option(
          "number", options->xid,
          "The Xid: 79 (GPU falls off the bus), 48 (ECC error), 31 (a program's fault), ...")
      ->required()
      ->check(CLI::Range(1, 999))
      ->type_name("XID");
  commands.add_for_gpu("lost", "The GPU falls off the bus", options,
                       [](const auto& root, const auto& o) {
                         return said(sim::inject_lost(root, o.gpu),
                                     fmt::format("GPU {} is off the bus (Xid 79)", o.gpu));
                       });
  commands.add_for_gpu("remove", "The GPU is removed from the machine", options,
                       [](const auto& root, const auto& o) {
                         return said(sim::inject_remove(root, o.gpu),
                                     fmt::format("GPU {} is no longer in the machine", o.gpu));
                       });
  auto* ecc = commands.add_for_gpu(
      "ecc", "Add memory errors to the counters", options, [](const auto& root, const auto& o) {
        return said(sim::inject_ecc(root, o.gpu, o.ecc),
                    fmt::format("GPU {}: added {} corrected and {} uncorrected memory errors",
                                o.gpu, o.ecc.corrected, o.ecc.uncorrected));
      });
  ecc->add_option("--corrected", options->ecc.corrected, "Corrected errors")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000'000));
  ecc->add_option("--uncorrected", options->ecc.uncorrected, "Uncorrected errors")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000'000));
  ecc->require_option(1, 0);
  commands
      .add_for_gpu("temperature", "Set the GPU's temperature", options,
                   [](const auto& root, const auto& o) {
                     return said(sim::inject_temperature(root, o.gpu, o.celsius),
                                 fmt::format("GPU {} has {} C", o.gpu, o.celsius));
                   })
      ->add_option("celsius", options->celsius, "Degrees")
      ->required()
      ->check(CLI::Range(-40, 200))
      ->type_name("C");
  auto* mig = commands.add_for_gpu("mig", "Change the MIG layout", options, inject_mig);
  auto* layout =
      mig->add_option("instances", options->layout,
                      "Profiles: 3g.71gb, 3g.71gb@4 (placement), 3g.71gb=1+2 (compute instances)");
  layout->type_name("PROFILE...");
  mig->add_flag("--off", options->off, "Switch MIG off")->excludes(layout);
}

void add_fault(InjectCommands& commands, const Options& options) {
  auto* fault = commands.add("fault", "An NVML or CUDA function misbehaves", options,
                             [](const auto& root, const auto& o) {
                               return said(sim::inject_fault(root, o.fault), fault_line(o.fault));
                             });
  fault
      ->add_option("function", options->fault.function,
                   "Its name, mig for all that change MIG, or * for all")
      ->required()
      ->type_name("FUNCTION");
  fault
      ->add_option("--result", options->fault.result,
                   "The error code to return (0: its normal answer)")
      ->type_name("N");
  auto* delay = fault->add_option("--delay-ms", options->fault.delay_ms,
                                  "How long it waits before it returns");
  delay->type_name("N");
  fault
      ->add_flag_callback(
          "--hang", [options] { options->fault.delay_ms = GANTRY_SIM_HANG; },
          "It does not return until the fault is cleared")
      ->excludes(delay);
  auto* every = fault->add_option("--every", options->fault.every, "Only every Nth call");
  every->type_name("N");
  fault
      ->add_option("--call", options->fault.call,
                   "Only the Nth call from now; calls that change MIG are counted over all "
                   "processes, others in each process")
      ->check(CLI::Range(1, 1'000'000'000))
      ->type_name("N")
      ->excludes(every);
  fault
      ->add_option_function<std::string>(
          "--then",
          [options](const std::string& word) {
            options->fault.action = parse_choice<gantry_sim_fault_action>(
                "--then", word,
                {{"lose", GANTRY_SIM_FAULT_LOSE}, {"destroy", GANTRY_SIM_FAULT_DESTROY}});
          },
          "With a function that changes MIG, and before it answers: lose (its GPU falls off the "
          "bus) or destroy (somebody else destroys the MIG instances of its GPU)")
      ->type_name("WHAT");
}

void add_machine_faults(InjectCommands& commands, const Options& options) {
  commands.add("unload", "The kernel module is unloaded, and with it all MIG instances", options,
               [](const auto& root, const auto&) {
                 return said(sim::inject_unload(root), "The kernel module is not loaded");
               });
  commands.add("load", "The kernel module is loaded again", options,
               [](const auto& root, const auto&) {
                 return said(sim::inject_load(root), "The kernel module is loaded");
               });
  commands.add("reboot", "The machine restarts: no MIG instances, MIG mode only on Ampere", options,
               [](const auto& root, const auto&) {
                 return said(sim::inject_reboot(root), "The machine has restarted");
               });
  add_fault(commands, options);
  auto* clear = commands.add(
      "clear", "Undo injections: back to the state after create", options,
      [](const auto& root, const auto& o) {
        return said(sim::clear(root, o.what, o.only),
                    fmt::format("{}: back to its initial state",
                                o.only ? fmt::format("GPU {}", *o.only) : "The machine"));
      });
  clear
      ->add_option_function<std::string>(
          "what",
          [options](const std::string& word) {
            options->what =
                parse_choice<sim::ClearScope>("clear", word,
                                              {{"all", sim::ClearScope::Everything},
                                               {"xid", sim::ClearScope::Everything},
                                               {"lost", sim::ClearScope::Lost},
                                               {"removed", sim::ClearScope::Removed},
                                               {"ecc", sim::ClearScope::Ecc},
                                               {"temperature", sim::ClearScope::Temperature},
                                               {"mig", sim::ClearScope::Mig},
                                               {"unload", sim::ClearScope::Driver},
                                               {"fault", sim::ClearScope::Faults}});
          },
          "all, xid, lost, removed, ecc, temperature, mig, unload or fault")
      ->type_name("WHAT");
  clear->add_option("--gpu", options->only, "This GPU only")->type_name("N");
}

std::string temperature_word(std::int32_t value) {
  return value == GANTRY_SIM_UNSET ? "N/A" : fmt::format("{}", value);
}

std::string instances_word(const gantry_sim_gpu& gpu, const gantry_sim_gpu_state& state) {
  if (gpu.mig_capable == 0) return "-";
  if (state.mig_current == 0) return state.mig_pending != 0 ? "off, on after a reset" : "off";
  std::string text;
  for (const auto& instance : state.mig) {
    if (instance.used == 0 || instance.profile >= GANTRY_SIM_MAX_MIG_PROFILES) continue;
    text += fmt::format("{}{}", text.empty() ? "" : " ", gpu.mig_profile[instance.profile].name);
  }
  if (text.empty()) text = "on, empty";
  return state.mig_pending == 0 ? text + ", off after a reset" : text;
}

void write_layout(json::Writer& out, const gantry_sim_gpu& gpu, const gantry_sim_gpu_state& now) {
  std::vector<gantry_sim_mig_instance> used;
  std::copy_if(std::begin(now.mig), std::end(now.mig), std::back_inserter(used),
               [](const auto& instance) {
                 return instance.used != 0 && instance.profile < GANTRY_SIM_MAX_MIG_PROFILES;
               });
  std::sort(used.begin(), used.end(),
            [](const auto& a, const auto& b) { return a.gi_id < b.gi_id; });
  out.rows("mig_layout", used, [&](const gantry_sim_mig_instance& instance) {
    const std::span computes(
        instance.ci, std::min<std::size_t>(instance.ci_count, GANTRY_SIM_MAX_MIG_INSTANCES));
    out.object([&] {
      out.member("id", instance.gi_id);
      out.member("profile", gpu.mig_profile[instance.profile].name);
      out.member("start", instance.placement);
      out.rows("compute_instances", computes, [&](const auto& compute) {
        out.object([&] {
          out.member("id", compute.ci_id);
          out.member("start", compute.start);
          out.member("slices", compute.slices);
        });
      });
    });
  });
}

void write_gpu(json::Writer& out, std::ptrdiff_t index, const gantry_sim_gpu& gpu,
               const gantry_sim_gpu_state& now) {
  out.object([&] {
    out.member("index", index);
    out.member("uuid", gpu.uuid);
    out.member("lost", now.lost != 0);
    out.member("reset_required", now.reset_required != 0);
    out.member("temperature",
               now.temperature == GANTRY_SIM_UNSET ? std::nullopt : std::optional(now.temperature));
    out.member("ecc_corrected", now.ecc_corrected_volatile);
    out.member("ecc_uncorrected", now.ecc_uncorrected_volatile);
    out.member("recovery_action", now.recovery_action);
    out.member("mig", now.mig_current != 0);
    out.member("mig_pending", now.mig_pending != 0);
    out.member("mig_instances", now.mig_count);
    write_layout(out, gpu, now);
  });
}

// The calls that changed MIG or tried to: how many, and the latest ones.
void write_mig_calls(json::Writer& out, const gantry_sim_state& state) {
  const std::span counts(state.mig_calls);
  out.rows("mig_calls", counts, [&](const std::uint64_t& calls) {
    const auto number = static_cast<std::uint32_t>(&calls - state.mig_calls);
    out.object([&] {
      out.member("function", sim::mig_function_name(number));
      out.member("calls", calls);
      out.member("successes", state.mig_successes[number]);
    });
  });
  const auto newest = state.mig_call_sequence;
  std::vector<gantry_sim_mig_call> latest;
  for (auto age = std::min<std::uint64_t>(newest, GANTRY_SIM_MIG_CALLS); age > 0; --age)
    latest.push_back(state.mig_call[(newest - age + 1) % GANTRY_SIM_MIG_CALLS]);
  out.rows("latest_mig_calls", latest, [&](const gantry_sim_mig_call& call) {
    out.object([&] {
      out.member("function", sim::mig_function_name(call.function));
      out.member("gpu", call.gpu);
      out.member("gpu_instance", call.gi_id);
      out.member("compute_instance", call.ci_id);
      out.member("value", call.value);
      out.member("result", call.result);
    });
  });
}

std::string state_json(const sim::StateFile& file, const gantry_sim_state& state) {
  const auto& machine = file.machine();
  const std::span faults(state.fault,
                         std::min<std::size_t>(state.fault_count, GANTRY_SIM_MAX_FAULTS));
  json::Writer out(json::Layout::Indented);
  out.object([&] {
    out.member("schema", kFirstSchema);
    out.member("machine", machine.name);
    out.member("driver_loaded", state.driver_unloaded == 0);
    out.member("events", state.event_sequence);
    out.rows("gpus", std::span(machine.gpu, machine.gpu_count), [&](const gantry_sim_gpu& gpu) {
      const auto index = &gpu - machine.gpu;
      write_gpu(out, index, gpu, state.gpu[index]);
    });
    out.rows("faults", faults, [&](const auto& fault) {
      out.object([&] {
        out.member("function", fault.function);
        out.member("result", fault.result);
        out.member("delay_ms", fault.delay_ms);
        out.member("every", fault.every);
        out.member("call", fault.call);
      });
    });
    write_mig_calls(out, state);
  });
  return out.text() + "\n";
}

Result<int> show_state(Context& context) {
  GANTRY_TRY(auto file, sim::StateFile::look(context.root));
  const auto& state = file.state();
  if (context.json) {
    fmt::print(context.out, "{}", state_json(file, state));
    return kOk;
  }
  fmt::print(context.out, "{}, driver {}, {} event{} so far\n\n", file.machine().name,
             state.driver_unloaded != 0 ? "not loaded" : file.machine().kernel_version,
             state.event_sequence, state.event_sequence == 1 ? "" : "s");
  Table table({"GPU", "NAME", "STATE", "TEMP", "ECC", "MIG"});
  for (std::uint32_t i = 0; i < file.machine().gpu_count; ++i) {
    const auto& gpu = file.machine().gpu[i];
    const auto& now = state.gpu[i];
    table.add({fmt::to_string(i), gpu.name,
               now.lost != 0             ? "lost"
               : now.reset_required != 0 ? "needs reset"
                                         : "ok",
               temperature_word(now.temperature),
               gpu.ecc_supported != 0
                   ? fmt::format("{}/{}", now.ecc_corrected_volatile, now.ecc_uncorrected_volatile)
                   : "-",
               instances_word(gpu, now)});
  }
  fmt::print(context.out, "{}", table.text(context.columns));
  for (std::uint32_t i = 0; i < state.fault_count && i < GANTRY_SIM_MAX_FAULTS; ++i) {
    const auto& fault = state.fault[i];
    const auto delay = fault.delay_ms == GANTRY_SIM_HANG
                           ? std::string("hangs")
                           : fmt::format("after {} ms", fault.delay_ms);
    fmt::print(context.out, "{}{} returns {} {}, every {}\n", i == 0 ? "\n" : "", fault.function,
               fault.result, delay, fault.every);
  }
  return kOk;
}

}  // namespace

void add_sim_inject(CLI::App& sim, Context& context, Action& chosen) {
  auto* inject = sim.add_subcommand("inject", "Inject a fault, or clear it");
  inject->require_subcommand(1);
  add_root(*inject, context);
  add_examples(
      *inject,
      "  gantry sim inject --root /tmp/machine xid 79 --gpu 3    # falls off the bus\n"
      "  gantry sim inject --root /tmp/machine mig --gpu 0 3g.71gb 2g.35gb\n"
      "  gantry sim inject --root /tmp/machine fault nvmlInit_v2 --delay-ms 5000\n"
      "  gantry sim inject --root /tmp/machine fault mig --call 3 --result 19    # in use\n"
      "  gantry sim inject --root /tmp/machine clear\n");
  InjectCommands commands(*inject, chosen);
  const auto options = std::make_shared<InjectOptions>();
  add_gpu_faults(commands, options);
  add_machine_faults(commands, options);

  auto* state = sim.add_subcommand("state", "Show what was injected so far");
  add_root(*state, context);
  state->add_flag("--json", context.json, "Print JSON");
  state->callback([&chosen] { chosen = [](Context& c) { return show_state(c); }; });
}

}  // namespace gantry::cli
