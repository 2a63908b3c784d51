// SPDX-License-Identifier: Apache-2.0
// How much memory a server and each of its clients may hold. From any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace gantry::http {

class MemoryBudget {
 public:
  explicit MemoryBudget(std::size_t limit) : limit_(limit) {}
  bool take(std::size_t bytes) {
    auto used = used_.load();
    do {
      if (bytes > limit_ || used > limit_ - bytes) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes));
    return true;
  }
  void give_back(std::size_t bytes) { used_ -= bytes; }
  std::size_t used() const { return used_; }
  bool has_room(std::size_t bytes) const { return bytes <= limit_ && used_ <= limit_ - bytes; }

 private:
  const std::size_t limit_;
  std::atomic<std::size_t> used_ = 0;
};

// One client address.
struct ClientMemory {
  ClientMemory(std::shared_ptr<MemoryBudget> server, std::size_t limit)
      : all(std::move(server)), own(limit) {}
  std::shared_ptr<MemoryBudget> all;
  MemoryBudget own;
  std::size_t connections = 0;  // of the server's thread
};

// Bytes that are taken from both budgets. Gives them back when it ends.
class MemoryHold {
 public:
  MemoryHold() = default;
  explicit MemoryHold(std::shared_ptr<ClientMemory> client) : client_(std::move(client)) {}
  MemoryHold(MemoryHold&& other) noexcept
      : client_(other.client_), bytes_(std::exchange(other.bytes_, 0)) {}
  MemoryHold& operator=(MemoryHold&& other) noexcept {
    if (this == &other) return *this;
    release();
    client_ = other.client_;
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }
  ~MemoryHold() { release(); }

  std::size_t size() const { return bytes_; }

  // Returns false, and changes nothing, if there is no room.
  bool resize(std::size_t bytes) {
    if (bytes > bytes_ && !take(bytes - bytes_)) return false;
    if (bytes < bytes_) give_back(bytes_ - bytes);
    bytes_ = bytes;
    return true;
  }
  void add(MemoryHold&& other) { bytes_ += std::exchange(other.bytes_, 0); }  // of the same client
  void release() { give_back(std::exchange(bytes_, 0)); }

 private:
  bool take(std::size_t bytes) {
    if (!client_ || !client_->own.take(bytes)) return false;
    if (client_->all->take(bytes)) return true;
    client_->own.give_back(bytes);
    return false;
  }
  void give_back(std::size_t bytes) {
    if (bytes == 0) return;
    client_->own.give_back(bytes);
    client_->all->give_back(bytes);
  }

  std::shared_ptr<ClientMemory> client_;
  std::size_t bytes_ = 0;
};

}  // namespace gantry::http
