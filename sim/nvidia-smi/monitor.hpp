// SPDX-License-Identifier: Apache-2.0
//
// The options and the columns that nvidia-smi dmon and pmon share.
#pragma once

#include "sim/nvidia-smi/session.hpp"

namespace smi {

struct MonitorOptions {
  const char* ids = nullptr;
  const char* metrics = nullptr;  // -s
  const char* file = nullptr;
  unsigned count = 0;  // 0: until it is stopped
  unsigned delay_s = 1;
  bool date = false, time = false;
  bool help = false;
};

/// Fills `out`; on a mistake prints what to type and returns the exit status. `known`: the letters
/// that -s takes.
int parse_monitor(int argc, char** argv, const char* topic, const char* known, MonitorOptions& out);

/// Opens the file, selects the GPUs, then prints a row after each delay. Two header lines come
/// first.
struct Monitor {
  void (*header)(const Session& session, const MonitorOptions& options);
  void (*row)(const Gpu& gpu, const MonitorOptions& options);
};
int run_monitor(Session& session, const MonitorOptions& options, const Monitor& monitor);

/// Characters of a column: 6 since driver 535, 5 before.
int column_width(const Session& session);
void print_stamp(const MonitorOptions& options);
/// The two lines' beginning: "# gpu" and "# Idx", with the stamp's columns.
void print_heading(const MonitorOptions& options, const char* name, const char* stamp);

}  // namespace smi
