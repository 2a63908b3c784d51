// SPDX-License-Identifier: Apache-2.0
// A tenant of the GPU that does as it is told on standard input, a command a line, and answers each
// with a line of JSON. Times are Unix milliseconds.
//   calibrate US                       {"rounds": N}: a kernel of N rounds takes US microseconds
//   load ROUNDS AT SECONDS [GRAPH]     busy from AT on, without ever waiting by itself; with GRAPH
//   as
//                                      graphs of so many kernels. {"bins": [...]}: kernels that
//                                      ended in each 10 ms since AT, by the GPU's own clock;
//                                      {"gaps": [[MS, LENGTH_MS], ...]}: when none ended for longer
//   pause ROUNDS AT BUSY IDLE SECONDS  the same, but nothing between BUSY and IDLE seconds after AT
//   requests ROUNDS EVERY_MS AT SECONDS  a kernel each EVERY_MS, and wait for it: p50, p99, max in
//   ms launches COUNT                     {"ns": T}: empty kernels, from one launch to the next
#include "said.hpp"

#include <cuda_runtime.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace {

constexpr int kMaxKernels = 1 << 20;  // kernels of one command
constexpr double kBinMs = 10;
constexpr int kBlocks = 264;  // two for each SM of an H200: the whole GPU
constexpr int kThreads = 256;

__global__ void nothing() {}

__device__ unsigned long long clock_ns() {
  unsigned long long t = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

// `next` counts the kernels that ran, so that a graph's kernels have entries of their own.
__global__ void work(int rounds, unsigned long long* ended, unsigned* next, float* never) {
  float a = static_cast<float>(threadIdx.x);
  float b = a + 1;
  for (int i = 0; i < rounds; ++i) {
    a = a * 1.0001f + 0.5f;
    b = b * 1.0001f + a;
    a = a * 1.0001f + 0.5f;
    b = b * 1.0001f + a;
  }
  if (a + b == 12345.0f) *never = a;
  if (ended != nullptr && blockIdx.x == 0 && threadIdx.x == 0) {
    const unsigned mine = atomicAdd(next, 1u);
    if (mine < kMaxKernels) ended[mine] = clock_ns();
  }
}

__global__ void tell_clock(unsigned long long* out) {
  *out = clock_ns();
}

struct Tenant {
  cudaStream_t stream = nullptr;
  unsigned long long* ended = nullptr;  // the host's, so that a copy at the end costs nothing
  unsigned* next = nullptr;
  double clock_offset_ms = 0;  // Unix = GPU's clock + this

  Tenant() {
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaHostAlloc(reinterpret_cast<void**>(&ended), (kMaxKernels + 1) * sizeof *ended,
                       cudaHostAllocMapped));
    MUST(cudaMalloc(&next, sizeof *next));
    work<<<kBlocks, kThreads, 0, stream>>>(1, nullptr, nullptr, nullptr);
    nothing<<<1, 1, 0, stream>>>();
    MUST(cudaStreamSynchronize(stream));
  }

  void set_clock() {
    double best = 1e300;
    for (int i = 0; i < 20; ++i) {
      const double before = unix_ms();
      tell_clock<<<1, 1, 0, stream>>>(ended + kMaxKernels);
      MUST(cudaStreamSynchronize(stream));
      const double after = unix_ms();
      if (after - before >= best) continue;
      best = after - before;
      clock_offset_ms = (before + after) / 2 - static_cast<double>(ended[kMaxKernels]) / 1e6;
    }
  }

  void launch(int rounds) {
    work<<<kBlocks, kThreads, 0, stream>>>(rounds, ended, next, nullptr);
    MUST(cudaPeekAtLastError());
  }

  void begin() {
    set_clock();
    memset(ended, 0, kMaxKernels * sizeof *ended);
    MUST(cudaMemsetAsync(next, 0, sizeof *next, stream));
    MUST(cudaStreamSynchronize(stream));
  }

  void tell_bins(double at, double seconds) {
    MUST(cudaStreamSynchronize(stream));
    unsigned ran = 0;
    MUST(cudaMemcpyAsync(&ran, next, sizeof ran, cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamSynchronize(stream));
    std::vector<int> bins(static_cast<std::size_t>(seconds * 1000 / kBinMs), 0);
    for (unsigned i = 0; i < std::min<unsigned>(ran, kMaxKernels); ++i) {
      const double when = static_cast<double>(ended[i]) / 1e6 + clock_offset_ms - at;
      const auto bin = static_cast<long>(std::floor(when / kBinMs));
      if (bin >= 0 && bin < static_cast<long>(bins.size())) ++bins[static_cast<std::size_t>(bin)];
    }
    std::vector<double> times;
    for (unsigned i = 0; i < std::min<unsigned>(ran, kMaxKernels); ++i)
      times.push_back(static_cast<double>(ended[i]) / 1e6 + clock_offset_ms - at);
    std::sort(times.begin(), times.end());
    printf("{\"bin_ms\": %.0f, \"ran\": %u, \"gaps\": [", kBinMs, ran);
    const char* between = "";
    for (std::size_t i = 1; i < times.size(); ++i) {
      if (times[i] - times[i - 1] <= kBinMs) continue;
      printf("%s[%.1f, %.1f]", between, times[i - 1], times[i] - times[i - 1]);
      between = ", ";
    }
    printf("], \"bins\": [");
    for (std::size_t i = 0; i < bins.size(); ++i) printf("%s%d", i == 0 ? "" : ",", bins[i]);
    say("]}");
  }
};

void sleep_until(double unix) {
  for (double left = unix - unix_ms(); left > 0; left = unix - unix_ms()) {
    if (left > 2) usleep(static_cast<useconds_t>((left - 1) * 1000));
  }
}

void calibrate(Tenant& tenant, double us) {
  double rounds = 2000;
  const double warm = now_ms();
  while (now_ms() - warm < 500) {
    tenant.launch(2000);
    MUST(cudaStreamSynchronize(tenant.stream));
  }
  for (int i = 0; i < 5; ++i) {
    constexpr int kEach = 100;
    const double start = now_ms();
    for (int k = 0; k < kEach; ++k) tenant.launch(static_cast<int>(rounds));
    MUST(cudaStreamSynchronize(tenant.stream));
    rounds *= us / ((now_ms() - start) * 1000 / kEach);
  }
  say("{\"rounds\": %d}", static_cast<int>(rounds));
}

cudaGraphExec_t graph_of(Tenant& tenant, int rounds, int kernels) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  MUST(cudaStreamBeginCapture(tenant.stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < kernels; ++i) tenant.launch(rounds);
  MUST(cudaStreamEndCapture(tenant.stream, &graph));
  MUST(cudaGraphInstantiate(&exec, graph, 0));
  MUST(cudaGraphDestroy(graph));
  return exec;
}

void load(Tenant& tenant, int rounds, double at, double seconds, int graph) {
  cudaGraphExec_t exec = graph > 0 ? graph_of(tenant, rounds, graph) : nullptr;
  tenant.begin();
  sleep_until(at);
  while (unix_ms() < at + seconds * 1000) {
    if (exec != nullptr) {
      MUST(cudaGraphLaunch(exec, tenant.stream));
    } else {
      tenant.launch(rounds);
    }
  }
  tenant.tell_bins(at, seconds);
  if (exec != nullptr) MUST(cudaGraphExecDestroy(exec));
}

void pause_between(Tenant& tenant, int rounds, double at, double busy, double idle,
                   double seconds) {
  tenant.begin();
  sleep_until(at);
  // Not more in the queue than a few milliseconds: otherwise the pause would not begin when it
  // says.
  for (int i = 0; unix_ms() < at + seconds * 1000; ++i) {
    const double since = unix_ms() - at;
    if (since >= busy * 1000 && since < idle * 1000) {
      MUST(cudaStreamSynchronize(tenant.stream));
      sleep_until(at + idle * 1000);
    }
    tenant.launch(rounds);
    if (i % 8 == 7) MUST(cudaStreamSynchronize(tenant.stream));
  }
  tenant.tell_bins(at, seconds);
}

void requests(Tenant& tenant, int rounds, double every_ms, double at, double seconds) {
  std::vector<double> took;
  double due = at;
  sleep_until(at - 100);
  while (due < at + seconds * 1000) {
    sleep_until(due);
    const double start = now_ms();
    work<<<kBlocks, kThreads, 0, tenant.stream>>>(rounds, nullptr, nullptr, nullptr);
    MUST(cudaStreamSynchronize(tenant.stream));
    took.push_back(now_ms() - start);
    due = std::max(due + every_ms, unix_ms());
  }
  std::sort(took.begin(), took.end());
  const auto part = [&](double p) {
    return took[static_cast<std::size_t>(p * static_cast<double>(took.size() - 1))];
  };
  say("{\"count\": %zu, \"p50\": %.4f, \"p90\": %.4f, \"p99\": %.4f, \"max\": %.4f}", took.size(),
      part(0.5), part(0.9), part(0.99), took.back());
}

// In bursts that the queue holds, so that it is the caller's time that is measured, and in one go.
void launches(Tenant& tenant, int count) {
  constexpr int kBurst = 500;
  double enqueued = 0;
  for (int done = 0; done < count; done += kBurst) {
    MUST(cudaStreamSynchronize(tenant.stream));
    const double start = now_ms();
    for (int i = 0; i < kBurst; ++i) nothing<<<1, 1, 0, tenant.stream>>>();
    enqueued += now_ms() - start;
  }
  MUST(cudaStreamSynchronize(tenant.stream));
  const double start = now_ms();
  for (int i = 0; i < count; ++i) nothing<<<1, 1, 0, tenant.stream>>>();
  MUST(cudaStreamSynchronize(tenant.stream));
  say("{\"burst_ns\": %.1f, \"ns\": %.1f}", enqueued * 1e6 / count,
      (now_ms() - start) * 1e6 / count);
}

}  // namespace

int main() {
  Tenant tenant;
  say("{\"ready\": true}");
  char line[256];
  while (fgets(line, sizeof line, stdin) != nullptr) {
    char word[32] = "";
    double v[5] = {};
    sscanf(line, "%31s %lf %lf %lf %lf %lf", word, &v[0], &v[1], &v[2], &v[3], &v[4]);
    const auto first = static_cast<int>(v[0]);
    if (strcmp(word, "calibrate") == 0)
      calibrate(tenant, v[0]);
    else if (strcmp(word, "load") == 0)
      load(tenant, first, v[1], v[2], static_cast<int>(v[3]));
    else if (strcmp(word, "pause") == 0)
      pause_between(tenant, first, v[1], v[2], v[3], v[4]);
    else if (strcmp(word, "requests") == 0)
      requests(tenant, first, v[1], v[2], v[3]);
    else if (strcmp(word, "launches") == 0)
      launches(tenant, first);
    else
      say("{\"failed\": \"no such command\"}");
  }
  return 0;
}
