// SPDX-License-Identifier: Apache-2.0
// Telling docker, containerd, CRI-O and podman about the nvidia runtime. A plan reads and decides;
// journal.hpp is what writes. FileWriter belong to the administrator: a plan changes keys of ours
// and leaves every other byte alone.
#pragma once

#include "base/core/result.hpp"
#include "base/sys/host.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::engines {

enum class Engine : std::uint8_t { Docker, Containerd, Crio, Podman };
std::string_view to_string(Engine engine);  // as --runtime spells it
Result<Engine> parse_engine(std::string_view name);

// containerd comes alone or inside a Kubernetes distribution, which has its own files for it.
enum class Distribution : std::uint8_t { Auto, Plain, K3s, Rke2, Microk8s, K0s };
std::string_view to_string(Distribution distribution);
Result<Distribution> parse_distribution(std::string_view name);

enum class IntegrationMode : std::uint8_t { Runtime, Hook };  // a named runtime, or hooks.d's JSON

// Runs one of the engine's own programs: its output, stdout and stderr together, or an error.
using RunProgram = std::function<Result<std::string>(const std::vector<std::string>&)>;

struct EngineOptions {
  Engine engine = Engine::Docker;
  Distribution distribution = Distribution::Auto;
  IntegrationMode mode = IntegrationMode::Runtime;
  std::string runtime_name = "nvidia";
  std::string runtime_path;  // "": what the engine's habit is; an existing one is then kept
  std::string hook_path;     // "": /usr/bin/nvidia-container-runtime-hook
  std::string config;        // "": the engine's own
  std::optional<std::string> drop_in;  // "": none, edit the main file; nullopt: as it fits
  bool set_as_default = false;
  bool enable_cdi = false;
  bool query_engine = false;  // take the configuration from the engine's program, not from files
  std::string executable;     // that program
  RunProgram run;             // empty: the engine's programs cannot be run here
};

// One key of ours, as it was and as it is now; values are raw text of the file's format.
struct KeyChange {
  enum class Kind : std::uint8_t {
    Value,
    Table,    // a table that we made: goes when it is empty
    Element,  // one text in a list of others
    Block,    // lines that we added to a file that is no TOML
  };
  Kind kind = Kind::Value;
  std::vector<std::string> path;
  std::optional<std::string> before;
  std::string after;
  bool operator==(const KeyChange&) const = default;
};

enum class Format : std::uint8_t { Toml, Json, Other };

struct FileChange {
  std::string path;  // inside the root
  Format format = Format::Other;
  std::optional<std::string> before;  // nullopt: it was not there
  std::string after;
  std::vector<KeyChange> keys;
  bool changes() const { return !before || *before != after; }
};

// What must be true in the engine's own view once the files are written.
struct Expectation {
  std::string runtime_name;
  std::string runtime_path;
  bool is_default = false;
};

struct ChangePlan {
  Engine engine = Engine::Docker;
  std::vector<FileChange> files;  // those that the engine will read; some may be as they were
  std::vector<std::string> notes;
  Expectation expectation;
  std::string config;                // the main file, for the engine's own check
  std::string program;               // the engine's program, for the same
  std::vector<std::string> restart;  // the command
  bool changes() const;
};

Result<ChangePlan> make_plan(const sys::Host& host, const EngineOptions& options);

}  // namespace gantry::engines
