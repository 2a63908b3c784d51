// SPDX-License-Identifier: Apache-2.0
//
// nvidia-smi of the simulated driver.
#include "sim/nvidia-smi/commands.hpp"
#include "sim/nvidia-smi/options.hpp"

#include <time.h>

namespace smi {
namespace {

using Topic = int (*)(Session&, int, char**);

struct TopicName {
  const char* name;
  Topic run;
};

constexpr TopicName kTopics[] = {{"topo", topology}, {"mig", mig},   {"nvlink", nvlink},
                                 {"dmon", dmon},     {"pmon", pmon}, {"drain", drain},
                                 {"vgpu", vgpu}};

int run_topic(Session& session, Topic topic, int argc, char** argv) {
  const int opened = open(session);
  if (opened != kDone) return opened;
  const int status = topic(session, argc, argv);
  close(session);
  return status;
}

int show_once(Session& session, const Options& options) {
  if (options.query_gpu != nullptr) return query_gpu(session, options.query_gpu, options.format);
  if (options.query_apps != nullptr) return query_apps(session, options.query_apps, options.format);
  if (options.query) return options.xml ? query_xml(session) : query_text(session, options.display);
  return show_summary(session);
}

int run_selected(Session& session, const Options& options) {
  if (options.list_excluded) return list_excluded(session);
  if (options.version) return show_version(session);
  const int selected = select(session, options.ids);
  if (selected != kDone) return selected;
  if (options.list) return list_gpus(session);
  if (options.reset) return reset_gpus(session);
  if (options.persistence != nullptr) return set_persistence(session, options.persistence);
  if (options.compute_mode != nullptr) return set_compute_mode(session, options.compute_mode);
  if (options.mig_mode != nullptr) return set_mig_mode(session, options.mig_mode);
  if (options.power_limit != nullptr) return set_power_limit(session, options.power_limit);
  if (options.gpu_clocks != nullptr) return lock_clocks(session, Clocks::Gpu, options.gpu_clocks);
  if (options.memory_clocks != nullptr)
    return lock_clocks(session, Clocks::Memory, options.memory_clocks);
  if (options.reset_gpu_clocks) return unlock_clocks(session, Clocks::Gpu);
  if (options.reset_memory_clocks) return unlock_clocks(session, Clocks::Memory);
  int status = show_once(session, options);
  while (options.loop_ms != 0 && status == kDone) {
    fflush(stdout);
    const timespec pause = {static_cast<time_t>(options.loop_ms / 1000),
                            static_cast<long>(options.loop_ms % 1000) * 1000000L};
    nanosleep(&pause, nullptr);
    status = show_once(session, options);
  }
  return status != kDone ? status : session.lost;
}

int run_help(Session& session, const Options& options) {
  if (options.help_query_gpu) help_query_gpu();
  if (options.help_query_apps) help_query_apps();
  if (!options.help) return kDone;
  // The version shown is NVML's; without NVML the help is still given.
  char version[NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE] = "unknown";
  if (load(session.nvml)) {
    call(session.nvml.nvmlSystemGetNVMLVersion, version, static_cast<unsigned>(sizeof version));
  }
  const char* own = strchr(version, '.');
  show_help(own != nullptr ? own + 1 : version);
  return kDone;
}

bool known_fields(const Options& options) {
  return (options.query_gpu == nullptr || known_gpu_fields(options.query_gpu)) &&
         (options.query_apps == nullptr || known_app_fields(options.query_apps)) &&
         known_format(options.format);
}

int run(int argc, char** argv) {
  Session session;
  for (const TopicName& topic : kTopics) {
    if (argc > 1 && strcmp(argv[1], topic.name) == 0) {
      return run_topic(session, topic.run, argc - 2, argv + 2);
    }
  }
  Options options;
  const int parsed = parse_options(argc, argv, options);
  if (parsed != kDone) return parsed;
  if (options.help || options.help_query_gpu || options.help_query_apps)
    return run_help(session, options);
  if (!known_fields(options)) return kUsage;
  if (options.file != nullptr && freopen(options.file, "we", stdout) == nullptr) {
    fprintf(stderr, "Unable to open file %s\n", options.file);
    return kUsage;
  }
  const int opened = open(session);
  if (opened != kDone) return opened;
  const int status = run_selected(session, options);
  close(session);
  return status;
}

}  // namespace
}  // namespace smi

extern "C" int main(int argc, char** argv) {
  return smi::run(argc, argv);
}
