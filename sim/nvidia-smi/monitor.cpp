// SPDX-License-Identifier: Apache-2.0
#include "sim/nvidia-smi/monitor.hpp"

#include <time.h>

namespace smi {
namespace {

constexpr unsigned kRowsPerHeader = 50;

int refuse_monitor(const char* topic, const char* argument) {
  printf("Invalid argument \"%s\". Please run 'nvidia-smi %s -h' for help.\n\n", argument, topic);
  return kUsage;
}

bool only_of(const char* text, const char* known) {
  return text[0] != '\0' && strspn(text, known) == strlen(text);
}

bool set_stamp(const char* value, MonitorOptions& out) {
  if (!only_of(value, "DT")) return false;
  out.date = strchr(value, 'D') != nullptr;
  out.time = strchr(value, 'T') != nullptr;
  return true;
}

bool set_monitor_value(const char* name, const char* value, const char* known,
                       MonitorOptions& out) {
  const auto is = [&](const char* brief, const char* full) {
    return strcmp(name, brief) == 0 || strcmp(name, full) == 0;
  };
  if (is("-i", "--id")) out.ids = value;
  if (is("-f", "--filename")) out.file = value;
  if (is("-i", "--id") || is("-f", "--filename")) return true;
  if (is("-c", "--count")) return parse_number(value, &out.count) && out.count > 0;
  if (is("-d", "--delay")) {
    return parse_number(value, &out.delay_s) && out.delay_s > 0 && out.delay_s <= 1000;
  }
  if (is("-o", "--options")) return set_stamp(value, out);
  if (!is("-s", "--select")) return false;
  out.metrics = value;
  return only_of(value, known);
}

}  // namespace

int parse_monitor(int argc, char** argv, const char* topic, const char* known,
                  MonitorOptions& out) {
  for (int i = 0; i < argc; i += 2) {
    if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0) {
      out.help = true;
      return kDone;
    }
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (value == nullptr || !set_monitor_value(argv[i], value, known, out))
      return refuse_monitor(topic, argv[i]);
  }
  return kDone;
}

int column_width(const Session& session) {
  return session.at_least(535) ? 6 : 5;
}

void print_heading(const MonitorOptions& options, const char* name, const char* stamp) {
  const bool units = strcmp(stamp, "units") == 0;
  if (options.date) printf("%s", units ? "#YYYYMMDD   " : "#Date       ");
  if (options.time) printf("%s%s", options.date ? "" : "#", units ? "HH:MM:SS   " : "Time       ");
  printf("%s %s", options.date || options.time ? " " : "#", name);
}

void print_stamp(const MonitorOptions& options) {
  const time_t now = time(nullptr);
  tm parts = {};
  localtime_r(&now, &parts);
  char text[32];
  if (options.date) {
    strftime(text, sizeof text, " %Y%m%d   ", &parts);
    fputs(text, stdout);
  }
  if (options.time) {
    strftime(text, sizeof text, "%H:%M:%S   ", &parts);
    printf("%s%s", options.date ? "" : " ", text);
  }
}

int run_monitor(Session& session, const MonitorOptions& options, const Monitor& monitor) {
  if (options.file != nullptr && freopen(options.file, "we", stdout) == nullptr) {
    fprintf(stderr, "Unable to open file %s\n", options.file);
    return kUsage;
  }
  const int selected = select(session, options.ids);
  if (selected != kDone) return selected;
  for (unsigned round = 0; options.count == 0 || round < options.count; ++round) {
    if (round > 0) {
      const timespec pause = {static_cast<time_t>(options.delay_s), 0};
      nanosleep(&pause, nullptr);
    }
    if (round % kRowsPerHeader == 0) monitor.header(session, options);
    for (unsigned i = 0; i < session.count; ++i) monitor.row(session.gpus[i], options);
    fflush(stdout);
  }
  return session.lost;
}

}  // namespace smi
