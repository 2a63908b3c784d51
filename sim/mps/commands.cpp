// SPDX-License-Identifier: Apache-2.0
#include "sim/mps/commands.hpp"

#include "sim/driver/mps_limits_internal.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mps {
namespace {

constexpr int kMaxWords = 8;

struct Words {
  const char* word[kMaxWords] = {};
  int count = 0;
  // The word at that place as a process id; 0 if there is none, as the vendor's does.
  pid_t pid(int at) const { return at < count ? static_cast<pid_t>(atol(word[at])) : 0; }
  bool has(const char* option) const {
    for (int i = 1; i < count; ++i) {
      if (strcmp(word[i], option) == 0) return true;
    }
    return false;
  }
};

struct Call {
  Daemon& daemon;
  Connection& user;
  const Words& words;
};

// nullptr, after an answer that says so.
Server* server_of(const Call& call, int at) {
  Server* server = call.daemon.server_with(call.words.pid(at));
  if (server == nullptr) call.daemon.answer(call.user, "Server %d not found", call.words.pid(at));
  return server;
}

template <class Visit>
void each_server(Daemon& daemon, pid_t only, Visit visit) {
  for (int i = 0; i < Daemon::kMaxServers; ++i) {
    Server& server = daemon.servers()[i];
    if (server.pid != 0 && server.ready && (only == 0 || server.pid == only)) visit(server);
  }
}

// In the order in which they connected.
template <class Visit>
void each_client(Daemon& daemon, const Server& server, Visit visit) {
  for (uint32_t id = 1; id <= server.clients; ++id) {
    for (int i = 0; i < Daemon::kMaxConnections; ++i) {
      const Connection& client = daemon.connections()[i];
      if (client.fd >= 0 && client.server == &server && client.id == id) visit(client);
    }
  }
}

void get_server_list(const Call& call) {
  each_server(call.daemon, 0,
              [&](const Server& server) { call.daemon.answer(call.user, "%d", server.pid); });
}

void get_server_status(const Call& call) {
  if (server_of(call, 1) != nullptr) call.daemon.answer(call.user, "ACTIVE");
}

void start_server(const Call& call) {
  const char* user = call.words.count > 2 && call.words.has("-uid") ? call.words.word[2] : nullptr;
  if (user == nullptr) {
    call.daemon.answer(call.user, "A user id (UID) is required to start a new server");
    return;
  }
  call.daemon.start_server(static_cast<uid_t>(strtoul(user, nullptr, 10)));
}

void get_client_list(const Call& call) {
  const Server* server = server_of(call, 1);
  if (server == nullptr) return;
  each_client(call.daemon, *server,
              [&](const Connection& client) { call.daemon.answer(call.user, "%d", client.pid); });
}

void get_device_client_list(const Call& call) {
  each_server(call.daemon, call.words.pid(1), [&](const Server& server) {
    for (uint32_t i = 0; i < server.devices.count; ++i) {
      const gantry_sim_mps_device& device = server.devices.device[i];
      bool used = false;
      each_client(call.daemon, server, [&](const Connection& client) {
        if ((client.devices & 1U << device.gpu) == 0) return;
        // The vendor's writes domain, bus and function.
        if (!used)
          call.daemon.answer(call.user, "[%u] %02x:%02x.%x, %s", i, device.domain, device.bus,
                             device.function, device.name);
        used = true;
        call.daemon.answer(call.user, "%d.1", client.pid);
      });
    }
  });
}

// The first word of a process's command line and its pid namespace, as /proc has them.
struct Process {
  char command[128] = "";
  unsigned long space = 0;
};

Process process_of(pid_t pid) {
  Process process;
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    const ssize_t got = read(fd, process.command, sizeof process.command - 1);
    process.command[got > 0 ? got : 0] = '\0';
    close(fd);
  }
  char link[64] = "";
  snprintf(path, sizeof path, "/proc/%d/ns/pid", pid);
  if (readlink(path, link, sizeof link - 1) > 5) process.space = strtoul(link + 5, nullptr, 10);
  return process;
}

void show_client(const Call& call, const Server& server, const Connection& client, bool& heading) {
  for (uint32_t i = 0; i < server.devices.count; ++i) {
    const gantry_sim_mps_device& device = server.devices.device[i];
    if ((client.devices & 1U << device.gpu) == 0) continue;
    if (!heading)
      call.daemon.answer(call.user, "%-10s%-10s%-15s%-26s%-15s%-15s", "PID", "ID", "SERVER",
                         "DEVICE", "NAMESPACE", "COMMAND");
    heading = true;
    const Process process = process_of(client.pid);
    call.daemon.answer(call.user, "%-10d%-10u%-15d%-26.22s%-15lu%-15s", client.pid, client.id,
                       server.pid, device.uuid, process.space, process.command);
  }
}

void ps(const Call& call) {
  bool found = false;
  bool heading = false;
  each_server(call.daemon, call.words.has("-p") ? call.words.pid(2) : 0, [&](const Server& server) {
    found = true;
    each_client(call.daemon, server,
                [&](const Connection& client) { show_client(call, server, client, heading); });
  });
  if (!found) call.daemon.answer(call.user, "Server not found");
}

void set_percentage(const Call& call, int at, double& percentage) {
  if (at >= call.words.count || !gantry::sim::parse_percentage(call.words.word[at], percentage))
    call.daemon.note("Invalid percentage, expected between (0.0, 100.0]");
  call.daemon.answer(call.user, "%.1f", percentage);
}

void set_default_active_thread_percentage(const Call& call) {
  set_percentage(call, 1, call.daemon.limits.percentage);
}

void get_default_active_thread_percentage(const Call& call) {
  call.daemon.answer(call.user, "%.1f", call.daemon.limits.percentage);
}

void set_active_thread_percentage(const Call& call) {
  if (Server* server = server_of(call, 1); server != nullptr)
    set_percentage(call, 2, server->limits.percentage);
}

void get_active_thread_percentage(const Call& call) {
  if (const Server* server = server_of(call, 1); server != nullptr)
    call.daemon.answer(call.user, "%.1f", server->limits.percentage);
}

// Ignores a device number that does not exist and a limit that cannot be parsed; like the vendor's,
// it reports no error.
void set_memory_limit(const Call& call, int at, Limits& limits) {
  if (at + 1 >= call.words.count) {
    call.daemon.note("Invalid command format.");
    return;
  }
  const unsigned long device = strtoul(call.words.word[at], nullptr, 10);
  if (device >= GANTRY_SIM_MAX_GPUS) return;
  MemoryLimit limit;
  if (gantry::sim::parse_memory_limit(call.words.word[at + 1], limit.bytes))
    snprintf(limit.text, sizeof limit.text, "%s", call.words.word[at + 1]);
  limits.memory[device] = limit;
  call.daemon.note("%s %s %s.", call.words.word[0], call.words.word[at], call.words.word[at + 1]);
}

void get_memory_limit(const Call& call, int at, const Limits& limits) {
  const unsigned long device =
      at < call.words.count ? strtoul(call.words.word[at], nullptr, 10) : GANTRY_SIM_MAX_GPUS;
  if (device < GANTRY_SIM_MAX_GPUS && limits.memory[device].bytes != 0) {
    call.daemon.answer(call.user, "%s", limits.memory[device].text);
  } else {
    call.daemon.note("No default pinned memory limit set for the device!");
  }
}

void set_default_device_pinned_mem_limit(const Call& call) {
  set_memory_limit(call, 1, call.daemon.limits);
}

void get_default_device_pinned_mem_limit(const Call& call) {
  get_memory_limit(call, 1, call.daemon.limits);
}

void set_device_pinned_mem_limit(const Call& call) {
  if (Server* server = server_of(call, 1); server != nullptr)
    set_memory_limit(call, 2, server->limits);
}

void get_device_pinned_mem_limit(const Call& call) {
  if (const Server* server = server_of(call, 1); server != nullptr)
    get_memory_limit(call, 2, server->limits);
}

void set_default_client_priority(const Call& call) {
  if (call.words.count > 1) call.daemon.priority = strtol(call.words.word[1], nullptr, 10);
}

void get_default_client_priority(const Call& call) {
  call.daemon.answer(call.user, "%ld", call.daemon.priority);
}

void terminate_client(const Call& call) {
  constexpr int kNoServer = 1;
  constexpr int kNoClient = 201;  // CUDA_ERROR_INVALID_CONTEXT
  const Server* server = server_of(call, 1);
  if (server == nullptr) {
    call.daemon.answer(call.user, "Server %d not found!", call.words.pid(1));
    call.daemon.answer(call.user, "%d", kNoServer);
    return;
  }
  const bool ended = call.daemon.terminate_client(*server, call.words.pid(2));
  call.daemon.answer(call.user, "%d", ended ? 0 : kNoClient);
}

void shutdown_server(const Call& call) {
  Server* server = server_of(call, 1);
  if (server == nullptr) return;
  call.daemon.stop_server(*server);
  if (server->pid != 0 && call.words.has("-f")) call.daemon.end_server_now(*server);
}

void quit(const Call& call) {
  call.daemon.quit(call.user);
}

struct Command {
  const char* name;
  void (*run)(const Call&);
};

#define GANTRY_COMMAND(name) \
  Command {                  \
#name, name              \
  }
constexpr Command kCommands[] = {
    GANTRY_COMMAND(get_server_list),
    GANTRY_COMMAND(get_server_status),
    GANTRY_COMMAND(start_server),
    GANTRY_COMMAND(get_client_list),
    GANTRY_COMMAND(get_device_client_list),
    GANTRY_COMMAND(ps),
    GANTRY_COMMAND(set_default_active_thread_percentage),
    GANTRY_COMMAND(get_default_active_thread_percentage),
    GANTRY_COMMAND(set_active_thread_percentage),
    GANTRY_COMMAND(get_active_thread_percentage),
    GANTRY_COMMAND(set_default_device_pinned_mem_limit),
    GANTRY_COMMAND(get_default_device_pinned_mem_limit),
    GANTRY_COMMAND(set_device_pinned_mem_limit),
    GANTRY_COMMAND(get_device_pinned_mem_limit),
    GANTRY_COMMAND(set_default_client_priority),
    GANTRY_COMMAND(get_default_client_priority),
    GANTRY_COMMAND(terminate_client),
    GANTRY_COMMAND(shutdown_server),
    GANTRY_COMMAND(quit),
};
#undef GANTRY_COMMAND

}  // namespace

void run_line(Daemon& daemon, Connection& user, const char* line) {
  daemon.note("Cmd:%s", line);
  char text[sizeof(MpsPacket::text)];
  snprintf(text, sizeof text, "%s", line);
  Words words;
  char* rest = nullptr;
  for (char* word = strtok_r(text, " \t\r\n", &rest); word != nullptr && words.count < kMaxWords;
       word = strtok_r(nullptr, " \t\r\n", &rest))
    words.word[words.count++] = word;
  if (words.count == 0) return;
  for (const Command& command : kCommands) {
    if (strcmp(command.name, words.word[0]) == 0) return command.run({daemon, user, words});
  }
  daemon.answer(user, "Unknown command \"%s\"", words.word[0]);
}

}  // namespace mps
