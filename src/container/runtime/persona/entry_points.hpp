// SPDX-License-Identifier: Apache-2.0
// gantry-runtime is one static program with several names. Each name has one function here; the
// table of names is in apps/gantry_runtime/main.cpp.
#pragma once

namespace gantry::runtime {

using EntryPoint = int (*)(int argc, char** argv);

// nvidia-container-runtime and gantry-runtime: an OCI runtime that edits config.json on `create`
// and `run`, then executes runc or crun.
int shim_main(int argc, char** argv);

// nvidia-container-runtime-hook and nvidia-container-toolkit: the classic prestart hook, which
// executes `nvidia-container-cli configure`.
int runtime_hook_main(int argc, char** argv);

// nvidia-container-cli: `configure` adds a GPU to a container that is starting; for `info` and
// `list` it executes the program `gantry` in the same directory.
int container_cli_main(int argc, char** argv);

// nvidia-cdi-hook: the hooks of CDI specs (cdi_hook.hpp).
int cdi_hook_main(int argc, char** argv);

// nvidia-ctk: `hook` is nvidia-cdi-hook. It is here and not in `gantry`, because specs of old tools
// call it with the image's environment, and a dynamically linked program would then load libraries
// that the image chooses. For everything else it executes `gantry`.
int ctk_main(int argc, char** argv);

}  // namespace gantry::runtime
