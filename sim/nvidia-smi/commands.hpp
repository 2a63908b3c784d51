// SPDX-License-Identifier: Apache-2.0
//
// What nvidia-smi can be asked to do. Each returns the exit status.
#pragma once

#include "sim/nvidia-smi/session.hpp"

namespace smi {

struct Options;

int show_summary(Session& session);
int list_gpus(Session& session);
int list_excluded(Session& session);

/// -q: text. `display` is the value of -d, null for everything.
int query_text(Session& session, const char* display);
/// -q -x
int query_xml(Session& session);

/// --query-gpu=FIELDS, --query-compute-apps=FIELDS; `format` is the value of --format, null for
/// plain CSV.
int query_gpu(Session& session, const char* fields, const char* format);
int query_apps(Session& session, const char* fields, const char* format);
/// Checked before NVML is opened, as the vendor's program does.
bool known_gpu_fields(const char* fields);
bool known_app_fields(const char* fields);
bool known_format(const char* format);
void help_query_gpu();
void help_query_apps();

/// nvidia-smi topo, mig, nvlink: arguments after the word.
int topology(Session& session, int argc, char** argv);
int mig(Session& session, int argc, char** argv);
int nvlink(Session& session, int argc, char** argv);
/// nvidia-smi dmon, pmon, drain, vgpu
int dmon(Session& session, int argc, char** argv);
int pmon(Session& session, int argc, char** argv);
int drain(Session& session, int argc, char** argv);
int vgpu(Session& session, int argc, char** argv);

/// -r
int reset_gpus(Session& session);

/// -pm, -c, -mig
int set_persistence(Session& session, const char* value);
int set_compute_mode(Session& session, const char* value);
int set_mig_mode(Session& session, const char* value);

/// -pl; -lgc and -lmc; -rgc and -rmc
enum class Clocks { Gpu, Memory };
int set_power_limit(Session& session, const char* value);
int lock_clocks(Session& session, Clocks which, const char* value);
int unlock_clocks(Session& session, Clocks which);

int show_version(Session& session);
void show_help(const char* version);

/// "Sun Nov 15 03:06:38 2026"
Text clock_text();

}  // namespace smi
