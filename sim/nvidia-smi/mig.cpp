// SPDX-License-Identifier: Apache-2.0
//
// nvidia-smi mig: the lists; what changes instances is in mig_change.cpp.
#include "sim/nvidia-smi/commands.hpp"
#include "sim/nvidia-smi/mig_profiles.hpp"
#include "sim/nvidia-smi/readings.hpp"

namespace smi {
namespace {

enum class Verb {
  None,
  ListProfiles,
  ListPlacements,
  ListInstances,
  ListComputeProfiles,
  ListComputePlacements,
  ListComputes,
  CreateInstances,
  CreateComputes,
  DestroyInstances,
  DestroyComputes,
  Help
};

struct Word {
  const char* brief;
  const char* full;
  Verb verb;
};

constexpr Word kVerbs[] = {
    {"-lgip", "--list-gpu-instance-profiles", Verb::ListProfiles},
    {"-lgipp", "--list-gpu-instance-possible-placements", Verb::ListPlacements},
    {"-lgi", "--list-gpu-instances", Verb::ListInstances},
    {"-lcip", "--list-compute-instance-profiles", Verb::ListComputeProfiles},
    {"-lcipp", "--list-compute-instance-possible-placements", Verb::ListComputePlacements},
    {"-lci", "--list-compute-instances", Verb::ListComputes},
    {"-cgi", "--create-gpu-instance", Verb::CreateInstances},
    {"-cci", "--create-compute-instance", Verb::CreateComputes},
    {"-dgi", "--destroy-gpu-instance", Verb::DestroyInstances},
    {"-dci", "--destroy-compute-instance", Verb::DestroyComputes},
    {"-h", "--help", Verb::Help},
};

constexpr const char* kProfileRule =
    "+-------------------------------------------------------------------------------+";
constexpr const char* kInstanceRule = "+---------------------------------------------------------+";
constexpr const char* kComputeRule =
    "+--------------------------------------------------------------------+";
constexpr const char* kComputeProfileRule =
    "+--------------------------------------------------------------------------------------+";

const Word* find_verb(const char* text) {
  for (const Word& word : kVerbs) {
    if (strcmp(word.brief, text) == 0 || strcmp(word.full, text) == 0) return &word;
  }
  return nullptr;
}

// The place for the value of an option of the form "-i 0", "--id=0".
const char** option_slot(const char* text, MigOptions& options) {
  if (strcmp(text, "-i") == 0 || strcmp(text, "--id") == 0) return &options.gpus;
  if (strcmp(text, "-gi") == 0 || strcmp(text, "--gpu-instance-id") == 0)
    return &options.gpu_instances;
  if (strcmp(text, "-ci") == 0 || strcmp(text, "--compute-instance-id") == 0) {
    return &options.compute_instances;
  }
  return nullptr;
}

// Reads one option and its value, if it has one; returns the number of arguments, 0 for an error.
int take(const char* text, const char* next, MigOptions& options, Verb& verb) {
  Text name;
  const char* equals = strchr(text, '=');
  name.set("%.*s", static_cast<int>(equals != nullptr ? equals - text : 250), text);
  const char* value = equals != nullptr                   ? equals + 1
                      : next != nullptr && next[0] != '-' ? next
                                                          : nullptr;
  const int with_value = equals != nullptr ? 1 : 2;
  if (name.is("-C") || name.is("--default-compute-instance")) {
    options.with_compute = true;
    return 1;
  }
  if (const char** slot = option_slot(name.c_str(), options)) {
    *slot = value;
    return value != nullptr ? with_value : 0;
  }
  const Word* word = find_verb(name.c_str());
  if (word == nullptr) return 0;
  verb = word->verb;
  if (verb != Verb::CreateInstances && verb != Verb::CreateComputes) return 1;
  options.profiles = value;
  if (value != nullptr) return with_value;
  return verb == Verb::CreateComputes ? 1 : 0;
}

int parse(int argc, char** argv, MigOptions& options, Verb& verb) {
  for (int i = 0; i < argc && argv[i] != nullptr;) {
    const int taken = take(argv[i], i + 1 < argc ? argv[i + 1] : nullptr, options, verb);
    if (taken == 0) {
      printf("Option \"%s\" is not recognized.\n", argv[i]);
      return kUsage;
    }
    i += taken;
  }
  return kDone;
}

unsigned remaining(const Gpu& gpu, const GpuProfile& profile) {
  unsigned count = 0;
  const nvmlReturn_t error = call(gpu.session->nvml.nvmlDeviceGetGpuInstanceRemainingCapacity,
                                  gpu.handle, profile.info.id, &count);
  return error == NVML_SUCCESS ? count : profile.info.instanceCount;
}

void show_profile(const Gpu& gpu, const GpuProfile& profile) {
  const nvmlGpuInstanceProfileInfo_t& info = profile.info;
  Text share;
  share.set("%u/%u", remaining(gpu, profile), info.instanceCount);
  Text memory;
  memory.set("%.2f", static_cast<double>(info.memorySizeMB) / 1024.0);
  printf("|%4u  MIG %-15s%3u     %-11s%-11s%-7s%-7u%-6u%u   |\n", gpu.index, profile.name.c_str(),
         info.id, share.c_str(), memory.c_str(), info.isP2pSupported != 0 ? "Yes" : "No",
         info.multiprocessorCount, info.decoderCount, info.encoderCount);
  printf("|%63s%-6u%-6u%u   |\n", "", info.copyEngineCount, info.jpegCount, info.ofaCount);
  puts(kProfileRule);
}

int list_profiles(Session& session) {
  unsigned shown = 0;
  for (unsigned i = 0; i < session.count; ++i) {
    GpuProfiles profiles;
    read_profiles(session.gpus[i], profiles);
    if (profiles.count > 0 && shown == 0) {
      puts(kProfileRule);
      puts("| GPU instance profiles:                                                        |");
      puts("| GPU   Name               ID    Instances   Memory     P2P    SM    DEC   ENC  |");
      puts("|                                Free/Total   GiB              CE    JPEG  OFA  |");
      puts("|===============================================================================|");
    }
    for (unsigned p = 0; p < profiles.count; ++p) show_profile(session.gpus[i], profiles.rows[p]);
    shown += profiles.count;
  }
  if (shown == 0) puts("No MIG-supported devices found.");
  return kDone;
}

int list_placements(Session& session) {
  unsigned shown = 0;
  for (unsigned i = 0; i < session.count; ++i) {
    const Gpu& gpu = session.gpus[i];
    GpuProfiles profiles;
    read_profiles(gpu, profiles);
    for (unsigned p = 0; p < profiles.count; ++p) {
      nvmlGpuInstancePlacement_t places[kMaxInstances] = {};
      unsigned count = kMaxInstances;
      const unsigned id = profiles.rows[p].info.id;
      if (call(session.nvml.nvmlDeviceGetGpuInstancePossiblePlacements_v2, gpu.handle, id, places,
               &count) != NVML_SUCCESS ||
          count == 0 || count > kMaxInstances) {
        continue;
      }
      printf("GPU %2u Profile ID %2u %s {", gpu.index, id,
             count > 1 ? "Placements:" : "Placement :");
      for (unsigned c = 0; c < count; ++c) printf("%s%u", c == 0 ? "" : ",", places[c].start);
      printf("}:%u\n", places[0].size);
      ++shown;
    }
  }
  if (shown == 0) puts("No MIG-supported devices found.");
  return kDone;
}

int list_instances(Session& session) {
  unsigned shown = 0;
  for (unsigned i = 0; i < session.count; ++i) {
    const Gpu& gpu = session.gpus[i];
    GpuProfiles profiles;
    if (mig_enabled(gpu)) read_profiles(gpu, profiles);
    for (unsigned p = 0; p < profiles.count; ++p) {
      nvmlGpuInstance_t instances[kMaxInstances] = {};
      const unsigned count = gpu_instances(gpu, profiles.rows[p].info.id, instances);
      for (unsigned c = 0; c < count; ++c) {
        if (shown++ == 0) {
          puts(kInstanceRule);
          puts("| GPU instances:                                          |");
          puts("| GPU   Name               Profile  Instance   Placement  |");
          puts("|                            ID       ID       Start:Size |");
          puts("|=========================================================|");
        }
        const nvmlGpuInstanceInfo_t info = instance_info(gpu, instances[c]);
        printf("|%4u  MIG %-17s%3u%9u%11u:%u     |\n", gpu.index, profiles.rows[p].name.c_str(),
               profiles.rows[p].info.id, info.id, info.placement.start, info.placement.size);
        puts(kInstanceRule);
      }
    }
  }
  if (shown > 0) return kDone;
  puts("No GPU instances found: Not Found");
  return NVML_ERROR_NOT_FOUND;
}

void show_compute_profiles(const Gpu& gpu, nvmlGpuInstance_t instance) {
  ComputeProfiles profiles;
  read_profiles(gpu, instance, profiles);
  const ComputeProfile* by_default = default_profile(profiles);
  const unsigned parent = instance_info(gpu, instance).id;
  for (unsigned p = 0; p < profiles.count; ++p) {
    const nvmlComputeInstanceProfileInfo_t& info = profiles.rows[p].info;
    unsigned left = 0;
    call(gpu.session->nvml.nvmlGpuInstanceGetComputeInstanceRemainingCapacity, instance, info.id,
         &left);
    Text share;
    share.set("%u/%u", left, info.instanceCount);
    printf("|%4u%7u       MIG %-16s%2u%c     %-14s%-10u%-6u%-6u%u   |\n", gpu.index, parent,
           profiles.rows[p].name.c_str(), info.id, &profiles.rows[p] == by_default ? '*' : ' ',
           share.c_str(), info.multiprocessorCount, info.sharedDecoderCount,
           info.sharedEncoderCount, info.sharedOfaCount);
    printf("|%70s%-6u%u         |\n", "", info.sharedCopyEngineCount, info.sharedJpegCount);
    puts(kComputeProfileRule);
  }
}

void show_compute_placements(const Gpu& gpu, nvmlGpuInstance_t instance) {
  ComputeProfiles profiles;
  read_profiles(gpu, instance, profiles);
  const unsigned parent = instance_info(gpu, instance).id;
  for (unsigned p = 0; p < profiles.count; ++p) {
    nvmlComputeInstancePlacement_t places[kMaxInstances] = {};
    unsigned count = kMaxInstances;
    const unsigned id = profiles.rows[p].info.id;
    if (call(gpu.session->nvml.nvmlGpuInstanceGetComputeInstancePossiblePlacements, instance, id,
             places, &count) != NVML_SUCCESS ||
        count == 0 || count > kMaxInstances) {
      continue;
    }
    printf("GPU %2u GI %2u Profile ID %2u %s {", gpu.index, parent, id,
           count > 1 ? "Placements:" : "Placement :");
    for (unsigned c = 0; c < count; ++c) printf("%s%u", c == 0 ? "" : ",", places[c].start);
    printf("}:%u\n", places[0].size);
  }
}

unsigned show_computes(const Gpu& gpu, nvmlGpuInstance_t instance, unsigned shown) {
  ComputeProfiles profiles;
  read_profiles(gpu, instance, profiles);
  const unsigned parent = instance_info(gpu, instance).id;
  for (unsigned p = 0; p < profiles.count; ++p) {
    nvmlComputeInstance_t computes[kMaxInstances] = {};
    const unsigned count = compute_instances(gpu, instance, profiles.rows[p].info.id, computes);
    for (unsigned c = 0; c < count; ++c) {
      if (shown++ == 0) {
        puts(kComputeRule);
        puts("| Compute instances:                                                 |");
        puts("| GPU     GPU       Name             Profile   Instance   Placement  |");
        puts("|       Instance                       ID        ID       Start:Size |");
        puts("|         ID                                                         |");
        puts("|====================================================================|");
      }
      const nvmlComputeInstanceInfo_t info = instance_info(gpu, computes[c]);
      printf("|%4u%7u       MIG %-16s%2u%10u%11u:%u     |\n", gpu.index, parent,
             profiles.rows[p].name.c_str(), profiles.rows[p].info.id, info.id, info.placement.start,
             info.placement.size);
      puts(kComputeRule);
    }
  }
  return shown;
}

void show_compute_profile_head() {
  puts(kComputeProfileRule);
  puts("| Compute instance profiles:                                                           |");
  puts("| GPU     GPU       Name             Profile  Instances   Exclusive       Shared       |");
  puts("|       Instance                       ID     Free/Total     SM       DEC   ENC   OFA  |");
  puts("|         ID                                                          CE    JPEG       |");
  puts("|======================================================================================|");
}

// -lcip, -lcipp and -lci walk the GPU instances asked for.
int list_in_instances(Session& session, const MigOptions& options, Verb verb) {
  unsigned instances_seen = 0;
  unsigned computes_seen = 0;
  for (unsigned i = 0; i < session.count; ++i) {
    const Gpu& gpu = session.gpus[i];
    GpuProfiles profiles;
    if (mig_enabled(gpu)) read_profiles(gpu, profiles);
    for (unsigned p = 0; p < profiles.count; ++p) {
      nvmlGpuInstance_t instances[kMaxInstances] = {};
      const unsigned count = gpu_instances(gpu, profiles.rows[p].info.id, instances);
      for (unsigned c = 0; c < count; ++c) {
        if (!is_listed(options.gpu_instances, instance_info(gpu, instances[c]).id)) continue;
        if (verb == Verb::ListComputes) {
          computes_seen = show_computes(gpu, instances[c], computes_seen);
        } else if (verb == Verb::ListComputePlacements) {
          show_compute_placements(gpu, instances[c]);
        } else {
          if (instances_seen == 0) show_compute_profile_head();
          show_compute_profiles(gpu, instances[c]);
        }
        ++instances_seen;
      }
    }
  }
  if (instances_seen == 0) {
    puts("No GPU instances found: Not Found");
    return NVML_ERROR_NOT_FOUND;
  }
  if (verb == Verb::ListComputes && computes_seen == 0) {
    puts("No compute instances found: Not Found");
    return NVML_ERROR_NOT_FOUND;
  }
  return kDone;
}

void show_usage() {
  puts(
      "\n    mig -- Multi Instance GPU management.\n\n"
      "    Usage: nvidia-smi mig [options]\n");
  for (const Word& word : kVerbs) printf("    [%s | %s]\n", word.brief, word.full);
  puts(
      "    [-C | --default-compute-instance]: with -cgi, also a compute instance in each\n"
      "    [-i | --id], [-gi | --gpu-instance-id], [-ci | --compute-instance-id]: which ones\n");
}

bool any_enabled(const Session& session) {
  for (unsigned i = 0; i < session.count; ++i) {
    if (mig_enabled(session.gpus[i])) return true;
  }
  return false;
}

}  // namespace

int mig(Session& session, int argc, char** argv) {
  MigOptions options;
  Verb verb = Verb::None;
  const int parsed = parse(argc, argv, options, verb);
  if (parsed != kDone) return parsed;
  if (verb == Verb::None || verb == Verb::Help) {
    show_usage();
    return kDone;
  }
  const int status = select(session, options.gpus);
  if (status != kDone) return status;
  if (verb == Verb::ListProfiles) return list_profiles(session);
  if (verb == Verb::ListPlacements) return list_placements(session);
  if (!any_enabled(session)) {
    puts("No MIG-enabled devices found.");
    return kDone;
  }
  switch (verb) {
    case Verb::ListInstances: return list_instances(session);
    case Verb::CreateInstances: return create_gpu_instances(session, options);
    case Verb::CreateComputes: return create_compute_instances(session, options);
    case Verb::DestroyInstances: return destroy_gpu_instances(session, options);
    case Verb::DestroyComputes: return destroy_compute_instances(session, options);
    default: return list_in_instances(session, options, verb);
  }
}

}  // namespace smi
