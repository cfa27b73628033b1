#include "sim/applications/local_page/server.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <csignal>
#include <exception>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "scenarios/base/text/errors.h"
#include "sim/applications/local_page/guard.h"
#include "sim/applications/local_page/routes.h"

namespace foretrace::local_page {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;

constexpr std::uint32_t kLargestHeader = 16 << 10;
constexpr std::uint64_t kLargestBody = 8 << 20;
constexpr std::size_t kMostConnections = 32;
constexpr std::chrono::seconds kToArrive{20}, kIdle{30}, kToLeave{60}, kToDrain{2}, kAfterError{1};

constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";
// A report is one file with its script and style inside, which no site may read or be read by.
constexpr std::string_view kReportPolicy =
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src "
    "'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

struct Shared {
  Shared(asio::io_context& io, const RunCommand& run, const ServerOptions& options)
      : routes{io, run, options.choices, options.planned_on} {}
  Guard guard{};
  Routes routes;
  std::size_t connections = 0;
};

std::string_view text_of(beast::string_view text) { return {text.data(), text.size()}; }

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, Shared& shared) : stream_{std::move(socket)}, shared_{shared} {
    ++shared_.connections;
  }
  ~Connection() { --shared_.connections; }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void read_header() {
    parser_.emplace();
    parser_->header_limit(kLargestHeader);
    parser_->body_limit(kLargestBody);
    stream_.expires_after(kIdle);
    http::async_read_header(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](beast::error_code error, std::size_t) {
          if (error == http::error::header_limit) {
            return self->refuse(431, "its header is too large");
          }
          if (error == http::error::body_limit) {
            return self->refuse(413, "its body is larger than 8 MiB");
          }
          if (error.category() == http::make_error_code(http::error::bad_method).category() &&
              error != http::error::end_of_stream) {
            return self->refuse(400, "it is no HTTP");
          }
          if (!error) self->ask_guard();
        });
  }

 private:
  void ask_guard() {
    const auto& header = parser_->get();
    for (const auto field : {http::field::host, http::field::origin}) {
      if (header.count(field) > 1) return refuse(400, "Host or Origin is said twice");
    }
    auto path = admitted(shared_.guard, {.method = text_of(header.method_string()),
                                         .target = text_of(header.target()),
                                         .host = text_of(header[http::field::host]),
                                         .origin = text_of(header[http::field::origin]),
                                         .site = text_of(header["Sec-Fetch-Site"])});
    if (!path) return refuse(path.error().status, path.error().why);
    request_.path = std::move(*path);
    request_.method = std::string{text_of(header.method_string())};
    stream_.expires_after(kToArrive);
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](beast::error_code error, std::size_t) {
                       if (error == http::error::body_limit) {
                         return self->refuse(413, "its body is larger than 8 MiB");
                       }
                       if (!error) self->answer();
                     });
  }

  void answer() {
    request_.body = std::move(parser_->get().body());
    keeps_ = parser_->get().keep_alive();
    stream_.expires_never();  // the child has its own limit
    is_waiting_ = true;
    try {
      stop_ = shared_.routes.answer(request_, [self = shared_from_this()](Reply reply) {
        self->is_waiting_ = false;
        self->write(std::move(reply));
      });
    } catch (const std::exception& error) {  // no process, no disk
      is_waiting_ = false;
      return refuse(500, error.what());
    }
    if (is_waiting_) watch();
  }

  /// Whoever goes away while a child works for them ends it.
  void watch() {
    stream_.socket().async_wait(
        tcp::socket::wait_read, [weak = weak_from_this()](beast::error_code error) {
          const auto self = weak.lock();
          if (error || !self || !self->is_waiting_) return;
          char byte = 0;
          const auto got =
              ::recv(self->stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
          if (got > 0) return;  // the next request, too early: it is read when this is answered
          self->stop_();
        });
  }

  void refuse(int status, const std::string& why) {
    keeps_ = false;
    write({.status = status, .body = json_of(Problem{.message = why})});
  }

  void write(Reply reply) {
    beast::error_code ignored;
    stream_.socket().cancel(ignored);  // watch()
    response_.emplace();
    auto& out = *response_;
    out.result(static_cast<unsigned>(reply.status));
    out.version(11);
    out.keep_alive(keeps_);
    out.set(http::field::content_type,
            reply.type + (reply.type == "application/octet-stream" ? "" : "; charset=utf-8"));
    const auto policy = reply.has_inline_script ? kReportPolicy : kPolicy;
    out.set("Content-Security-Policy", beast::string_view{policy.data(), policy.size()});
    out.set("X-Content-Type-Options", "nosniff");
    out.set("X-Frame-Options", "DENY");
    out.set("Referrer-Policy", "no-referrer");
    out.set("Cross-Origin-Resource-Policy", "same-origin");
    out.set("Cross-Origin-Opener-Policy", "same-origin");
    out.set(http::field::cache_control, "no-store");
    if (!reply.saved_as.empty()) {
      out.set(http::field::content_disposition,
              fmt::format("attachment; filename=\"{}\"", reply.saved_as));
    }
    out.body() = std::move(reply.body);
    out.prepare_payload();
    stream_.expires_after(kToLeave);
    http::async_write(stream_, out,
                      [self = shared_from_this()](beast::error_code error, std::size_t) {
                        if (error || !self->keeps_) return self->close();
                        self->read_header();
                      });
  }

  /// What was refused unread is read for a moment: else the answer would be lost with it.
  void close() {
    beast::error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    stream_.expires_after(kToDrain);
    drain();
  }

  void drain() {
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(kLargestHeader),
                            [self = shared_from_this()](beast::error_code error, std::size_t got) {
                              self->drained_ += got;
                              if (!error && self->drained_ < 2 * kLargestBody) self->drain();
                            });
  }

  beast::tcp_stream stream_;
  Shared& shared_;
  beast::flat_buffer buffer_{kLargestHeader + (64 << 10)};
  std::optional<http::request_parser<http::string_body>> parser_;
  std::optional<http::response<http::string_body>> response_;
  Request request_;
  std::function<void()> stop_;
  bool keeps_ = false, is_waiting_ = false;
  std::uint64_t drained_ = 0;
};

void accept_next(tcp::acceptor& acceptor, Shared& shared) {
  acceptor.async_accept([&](beast::error_code error, tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    // One too many is closed at once: browsers ask again.
    if (!error && shared.connections < kMostConnections) {
      std::make_shared<Connection>(std::move(socket), shared)->read_header();
    }
    if (!error) return accept_next(acceptor, shared);
    const auto pause = std::make_shared<asio::steady_timer>(acceptor.get_executor(), kAfterError);
    pause->async_wait([&, pause](beast::error_code) { accept_next(acceptor, shared); });
  });
}

}  // namespace

void serve(const ServerOptions& options, const RunCommand& run,
           const std::function<void(const std::string& address)>& ready) {
  std::optional<Shared> shared;  // lives longer than what waits in `io`
  asio::io_context io{1};
  tcp::acceptor acceptor{io};
  const tcp::endpoint where{asio::ip::address_v4::loopback(), options.port};
  try {
    acceptor.open(where.protocol());
    acceptor.set_option(tcp::acceptor::reuse_address{true});
    acceptor.bind(where);
    acceptor.listen();
  } catch (const boost::system::system_error& error) {
    throw UsageError{fmt::format("--port {}: {}\n  hint: without --port a free one is taken",
                                 options.port, error.code().message())};
  }
  const std::uint16_t port = acceptor.local_endpoint().port();
  shared.emplace(io, run, options);
  shared->guard = {new_token(), port};
  asio::signal_set signals{io, SIGINT, SIGTERM};
  signals.async_wait([&](const auto&, int) { io.stop(); });
  accept_next(acceptor, *shared);
  ready(fmt::format("http://127.0.0.1:{}/{}/", port, shared->guard.token));
  io.run();
}

}  // namespace foretrace::local_page
