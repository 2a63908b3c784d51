// SPDX-License-Identifier: Apache-2.0
// Registers the nvidia runtime with docker, containerd, CRI-O and podman. A plan only reads and
// decides; journal.hpp writes. The files belong to the administrator: a plan changes our own keys
// and leaves every other byte as it is.
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
std::string_view to_string(Engine engine);  // the value of --runtime
Result<Engine> parse_engine(std::string_view name);

// containerd is installed alone or by a Kubernetes distribution, which has its own files for it.
enum class Distribution : std::uint8_t { Auto, Plain, K3s, Rke2, Microk8s, K0s };
std::string_view to_string(Distribution distribution);
Result<Distribution> parse_distribution(std::string_view name);

enum class IntegrationMode : std::uint8_t { Runtime, Hook };  // a named runtime, or hooks.d's JSON

// Runs one of the engine's own programs and returns its stdout and stderr together, or an error.
using RunProgram = std::function<Result<std::string>(const std::vector<std::string>&)>;

struct EngineOptions {
  Engine engine = Engine::Docker;
  Distribution distribution = Distribution::Auto;
  IntegrationMode mode = IntegrationMode::Runtime;
  std::string runtime_name = "nvidia";
  std::string runtime_path;            // "": the engine's usual one; an existing path is then kept
  std::string hook_path;               // "": /usr/bin/nvidia-container-runtime-hook
  std::string config;                  // "": the engine's default file
  std::optional<std::string> drop_in;  // "": none, edit the main file; nullopt: choose
  bool set_as_default = false;
  bool enable_cdi = false;
  // containerd: pass the annotations that name CDI devices to our runtime. A user who may set a
  // pod's annotations can then ask the runtime for devices, within its policy.
  bool pass_cdi_annotations = false;
  bool sort_keys = false;  // containerd: NVIDIA's order of keys in a main file that has no tables
  bool query_engine = false;  // read the configuration from the engine's program, not from files
  std::string executable;     // the engine's program
  RunProgram run;             // empty: the engine's programs cannot be run here
};

// One of our keys, before and after; values are raw text of the file's format.
struct KeyChange {
  enum class Kind : std::uint8_t {
    Value,
    Table,    // a table that we added: removed when it is empty
    Element,  // one string in a list with other strings
    Block,    // lines that we added to a file that is not TOML
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
  std::optional<std::string> before;  // nullopt: it did not exist
  std::string after;
  std::vector<KeyChange> keys;
  bool changes() const { return !before || *before != after; }
};

// What the engine's own configuration must contain after the files are written.
struct Expectation {
  std::string runtime_name;
  std::string runtime_path;
  bool is_default = false;
  bool program_exists = true;
};

struct ChangePlan {
  Engine engine = Engine::Docker;
  std::vector<FileChange> files;  // the files that the engine reads; some may be unchanged
  std::vector<std::string> notes;
  Expectation expectation;
  std::string config;                    // the main file, for the engine's own check
  std::string program;                   // the engine's program, for the same check
  std::vector<std::string> show_config;  // CRI-O: the command that prints its configuration
  std::vector<std::string> restart;      // the command
  bool changes() const;
};

Result<ChangePlan> make_plan(const sys::Host& host, const EngineOptions& options);

}  // namespace gantry::engines
