// SPDX-License-Identifier: Apache-2.0
// gantry-runtime is one static program with many names. Each name is one function here; the table
// that joins them is in apps/gantry_runtime/main.cpp.
#pragma once

namespace gantry::runtime {

using EntryPoint = int (*)(int argc, char** argv);

// nvidia-container-runtime and gantry-runtime: an OCI runtime that edits config.json on `create`
// and `run`, then becomes runc or crun.
int shim_main(int argc, char** argv);

// nvidia-container-runtime-hook and nvidia-container-toolkit: the prestart hook of the classic
// chain, which becomes `nvidia-container-cli configure`.
int runtime_hook_main(int argc, char** argv);

// nvidia-container-cli: `configure` puts a GPU into a container that is being started; `info` and
// `list` are answered by the program `gantry` beside this one.
int container_cli_main(int argc, char** argv);

// nvidia-cdi-hook: what CDI specs have done inside a container (cdi_hook.hpp).
int cdi_hook_main(int argc, char** argv);

// nvidia-ctk: `hook` is nvidia-cdi-hook, here and not in `gantry`: specs of old tools call it
// without an environment of its own, and a dynamically linked program would then load what the
// image wants. Everything else is answered by `gantry`.
int ctk_main(int argc, char** argv);

}  // namespace gantry::runtime
