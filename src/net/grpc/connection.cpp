// SPDX-License-Identifier: Apache-2.0
#include "net/grpc/connection_internal.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace gantry::grpc {
namespace {

constexpr std::size_t kOutputAtOnce = std::size_t{64} << 10;
constexpr std::size_t kReadsPerTurn = 16;  // then the loop serves others
// At least 100, because clients assume that number until they receive our settings, and further
// streams would be refused.
constexpr std::uint32_t kConcurrentStreams = 128;

std::string framed(std::string_view bytes) {
  const auto length = static_cast<std::uint32_t>(bytes.size());
  std::string frame;
  frame.reserve(kMessagePrefixSize + bytes.size());
  frame.push_back(0);  // not compressed
  for (const unsigned shift : {24U, 16U, 8U, 0U}) {
    frame.push_back(static_cast<char>(length >> shift & 0xFFU));
  }
  frame.append(bytes);
  return frame;
}

std::vector<nghttp2_nv> fields(const std::vector<Header>& headers) {
  std::vector<nghttp2_nv> nv;
  nv.reserve(headers.size());
  const auto bytes = [](const std::string& text) {
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
  };
  for (const auto& [name, value] : headers) {
    nv.push_back({bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE});
  }
  return nv;
}

struct OptionDeleter {
  void operator()(nghttp2_option* option) const { nghttp2_option_del(option); }
};

}  // namespace

Result<std::shared_ptr<Connection>> Connection::start(sys::Loop& loop, sys::UniqueFd fd, Role role,
                                                      StreamHandler& streams) {
  std::shared_ptr<Connection> made(new Connection(std::move(fd), streams));
  GANTRY_CHECK(made->begin(loop, role).in("starting HTTP/2"));
  return made;
}

Connection::~Connection() {
  nghttp2_session_del(session_);
  nghttp2_session_del(ended_);
}

Status Connection::begin(sys::Loop& loop, Role role) {
  loop_ = &loop;
  nghttp2_option* raw = nullptr;
  if (nghttp2_option_new(&raw) != 0) return Error(Errc::Internal, "no memory");
  const std::unique_ptr<nghttp2_option, OptionDeleter> option(raw);
  // Kubelets put a socket's path, escaped or not, into :authority; nghttp2 would refuse some.
  nghttp2_option_set_no_http_messaging(raw, 1);
  const auto make =
      role == Role::Server ? nghttp2_session_server_new2 : nghttp2_session_client_new2;
  nghttp2_session_callbacks* table = callbacks();
  const int made = make(&session_, table, this, raw);
  nghttp2_session_callbacks_del(table);
  if (made != 0) return Error(Errc::Internal, nghttp2_strerror(made));

  std::array<nghttp2_settings_entry, 2> settings{
      {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, kConcurrentStreams},
       {NGHTTP2_SETTINGS_ENABLE_PUSH, 0}}};
  const std::size_t count = role == Role::Server ? 1 : 2;  // only a client sets the push option
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(), count);
  const std::weak_ptr<Connection> weak = weak_from_this();
  GANTRY_TRY(watch_, loop.watch(fd_.get(), EPOLLIN, [weak](std::uint32_t events) {
    if (const auto self = weak.lock()) self->on_ready(events);
  }));
  flush_soon();
  return {};
}

nghttp2_session_callbacks* Connection::callbacks() {
  nghttp2_session_callbacks* table = nullptr;
  if (nghttp2_session_callbacks_new(&table) != 0) return nullptr;
  nghttp2_session_callbacks_set_on_header_callback(
      table, [](nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                std::size_t name_length, const std::uint8_t* value, std::size_t value_length,
                std::uint8_t, void* user) {
        auto* self = static_cast<Connection*>(user);
        if (self->closed() || frame->hd.type != NGHTTP2_HEADERS) return 0;
        self->streams_->on_header(frame->hd.stream_id,
                                  {reinterpret_cast<const char*>(name), name_length},
                                  {reinterpret_cast<const char*>(value), value_length});
        return 0;
      });
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
      table, [](nghttp2_session*, std::uint8_t, std::int32_t stream, const std::uint8_t* data,
                std::size_t length, void* user) {
        auto* self = static_cast<Connection*>(user);
        if (self->closed()) return 0;
        self->streams_->on_data(stream, {reinterpret_cast<const char*>(data), length});
        return 0;
      });
  nghttp2_session_callbacks_set_on_frame_recv_callback(
      table, [](nghttp2_session*, const nghttp2_frame* frame, void* user) {
        auto* self = static_cast<Connection*>(user);
        const bool carries_end =
            frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS;
        if (self->closed() || !carries_end) return 0;
        if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
          self->streams_->on_end(frame->hd.stream_id);
        }
        return 0;
      });
  nghttp2_session_callbacks_set_on_stream_close_callback(
      table, [](nghttp2_session*, std::int32_t stream, std::uint32_t error, void* user) {
        auto* self = static_cast<Connection*>(user);
        self->outgoing_.erase(stream);
        if (!self->closed()) self->streams_->on_stream_closed(stream, error);
        return 0;
      });
  nghttp2_session_callbacks_set_on_frame_not_send_callback(
      table, [](nghttp2_session*, const nghttp2_frame* frame, int, void* user) {
        auto* self = static_cast<Connection*>(user);
        if (self->closed() || frame->hd.type != NGHTTP2_HEADERS) return 0;
        self->outgoing_.erase(frame->hd.stream_id);
        self->streams_->on_stream_closed(frame->hd.stream_id, NGHTTP2_REFUSED_STREAM);
        return 0;
      });
  return table;
}

Result<std::int32_t> Connection::open(const std::vector<Header>& headers) {
  if (closed()) return Error(Errc::Busy, "the connection is closed");
  const auto nv = fields(headers);
  const auto source = provider();
  const auto stream =
      nghttp2_submit_request(session_, nullptr, nv.data(), nv.size(), &source, nullptr);
  if (stream < 0) return Error(Errc::Busy, nghttp2_strerror(stream));
  outgoing_[stream];
  flush_soon();
  return stream;
}

void Connection::headers(std::int32_t stream, const std::vector<Header>& headers, StreamEnd end) {
  if (closed()) return;
  const auto nv = fields(headers);
  const auto source = provider();
  if (end == StreamEnd::Later) outgoing_[stream];
  nghttp2_submit_response(session_, stream, nv.data(), nv.size(),
                          end == StreamEnd::Later ? &source : nullptr);
  flush_soon();
}

void Connection::message(std::int32_t stream, std::string_view bytes) {
  const auto found = outgoing_.find(stream);
  if (closed() || found == outgoing_.end() || found->second.finishing) return;
  found->second.messages.push_back(framed(bytes));
  found->second.bytes += kMessagePrefixSize + bytes.size();
  nghttp2_session_resume_data(session_, stream);
  flush_soon();
}

void Connection::replace_waiting(std::int32_t stream, std::string_view bytes) {
  const auto found = outgoing_.find(stream);
  if (closed() || found == outgoing_.end() || found->second.finishing) return;
  auto& waiting = found->second;
  while (waiting.messages.size() > (waiting.sent > 0 ? 1U : 0U)) {
    waiting.bytes -= waiting.messages.back().size();
    waiting.messages.pop_back();
  }
  message(stream, bytes);
}

void Connection::finish(std::int32_t stream, std::vector<Header> trailers) {
  const auto found = outgoing_.find(stream);
  if (closed() || found == outgoing_.end() || found->second.finishing) return;
  found->second.finishing = true;
  found->second.trailers = std::move(trailers);
  nghttp2_session_resume_data(session_, stream);
  flush_soon();
}

void Connection::reset(std::int32_t stream, std::uint32_t http2_error) {
  if (closed()) return;
  nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream, http2_error);
  flush_soon();
}

void Connection::go_away() {
  if (closed()) return;
  nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE,
                        nghttp2_session_get_last_proc_stream_id(session_), NGHTTP2_NO_ERROR,
                        nullptr, 0);
  flush_soon();
}

void Connection::close() {
  if (closed()) return;
  ended_ = std::exchange(session_, nullptr);
  watch_.cancel();
  flush_timer_.cancel();
  fd_.reset();
}

bool Connection::may_open() const {
  return !closed() && nghttp2_session_check_request_allowed(session_) != 0;
}

std::size_t Connection::waiting_bytes(std::int32_t stream) const {
  const auto found = outgoing_.find(stream);
  return found == outgoing_.end() ? 0 : found->second.bytes - found->second.sent;
}

bool Connection::all_sent() const {
  if (closed()) return true;
  const auto idle = [](const auto& entry) {
    return entry.second.messages.empty() && !entry.second.finishing;
  };
  return out_sent_ == out_.size() && nghttp2_session_want_write(session_) == 0 &&
         std::all_of(outgoing_.begin(), outgoing_.end(), idle);
}

nghttp2_data_provider Connection::provider() {
  nghttp2_data_provider made{};
  made.source.ptr = this;
  made.read_callback = [](nghttp2_session* session, std::int32_t stream, std::uint8_t* buffer,
                          std::size_t length, std::uint32_t* flags, nghttp2_data_source* source,
                          void*) {
    return static_cast<Connection*>(source->ptr)->provide(session, stream, buffer, length, flags);
  };
  return made;
}

ssize_t Connection::provide(nghttp2_session* session, std::int32_t stream, std::uint8_t* buffer,
                            std::size_t length, std::uint32_t* flags) {
  const auto found = outgoing_.find(stream);
  if (found == outgoing_.end()) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  auto& waiting = found->second;
  std::size_t copied = 0;
  while (!waiting.messages.empty() && copied < length) {
    const auto& first = waiting.messages.front();
    const auto part = std::min(length - copied, first.size() - waiting.sent);
    std::copy_n(first.data() + waiting.sent, part, buffer + copied);
    copied += part;
    waiting.sent += part;
    if (waiting.sent < first.size()) break;
    waiting.bytes -= first.size();
    waiting.sent = 0;
    waiting.messages.pop_front();
  }
  if (waiting.messages.empty() && waiting.finishing) {
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (!waiting.trailers.empty()) {
      *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
      const auto nv = fields(waiting.trailers);
      nghttp2_submit_trailer(session, stream, nv.data(), nv.size());
    }
    return static_cast<ssize_t>(copied);
  }
  if (copied == 0) return NGHTTP2_ERR_DEFERRED;
  return static_cast<ssize_t>(copied);
}

void Connection::on_ready(std::uint32_t events) {
  const auto self = shared_from_this();
  busy_ = true;
  const bool goes_on = (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0 || receive();
  busy_ = false;
  if (goes_on) flush();
}

// Returns false when the connection has ended.
bool Connection::receive() {
  std::array<char, 16384> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init): read fills it
  for (std::size_t reads = 0; reads < kReadsPerTurn; ++reads) {
    const auto got = ::read(fd_.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got < 0) {
      fail(fmt::format("read: {}", std::strerror(errno)));
      return false;
    }
    if (got == 0) {
      fail("the peer closed the connection");
      return false;
    }
    if (!feed({buffer.data(), static_cast<std::size_t>(got)})) return false;
  }
  return true;
}

bool Connection::feed(std::string_view bytes) {
  const auto taken = nghttp2_session_mem_recv(
      session_, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  if (closed()) return false;
  if (taken >= 0) return true;
  fail(fmt::format("HTTP/2: {}", nghttp2_strerror(static_cast<int>(taken))));
  return false;
}

// Flushes later, so that a sender is not called back while it sends, and several messages go into
// one write.
void Connection::flush_soon() {
  if (closed() || busy_ || flush_is_due_) return;
  flush_is_due_ = true;
  flush_timer_ = loop_->after({}, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->flush();
  });
}

void Connection::flush() {
  if (closed()) return;
  const auto self = shared_from_this();
  flush_is_due_ = false;
  while (fill() && write_out()) {
  }
  if (closed()) return;
  const bool room_wanted = out_sent_ < out_.size();
  if (room_wanted != waiting_for_write_) {
    waiting_for_write_ = room_wanted;
    watch_.wait_for(EPOLLIN | (room_wanted ? EPOLLOUT : 0U));
  }
  if (nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0 &&
      !room_wanted) {
    fail("HTTP/2: the session is over");
  }
}

// Takes a bounded piece of nghttp2's output; false if there is none.
bool Connection::fill() {
  if (out_sent_ < out_.size()) return true;
  out_.clear();
  out_sent_ = 0;
  while (!closed() && out_.size() < kOutputAtOnce) {
    const std::uint8_t* data = nullptr;
    const auto length = nghttp2_session_mem_send(session_, &data);
    if (closed() || length <= 0) break;
    out_.append(reinterpret_cast<const char*>(data), static_cast<std::size_t>(length));
  }
  return !closed() && !out_.empty();
}

// Returns false if the socket's buffer is full.
bool Connection::write_out() {
  while (out_sent_ < out_.size()) {
    const auto wrote =
        ::send(fd_.get(), out_.data() + out_sent_, out_.size() - out_sent_, MSG_NOSIGNAL);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EAGAIN) return false;
    if (wrote < 0) {
      fail(fmt::format("write: {}", std::strerror(errno)));
      return false;
    }
    out_sent_ += static_cast<std::size_t>(wrote);
  }
  return true;
}

void Connection::fail(const std::string& why) {
  if (closed()) return;
  auto* streams = streams_;
  close();
  streams->on_connection_closed(why);
}

}  // namespace gantry::grpc
