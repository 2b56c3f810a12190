// One pass over one epoch of a channel.
#pragma once

#include <poll.h>
#include <sys/uio.h>

#include <chrono>
#include <memory>
#include <string>

#include "channel.h"
#include "epochs.h"
#include "framing.h"
#include "recordio.h"
#include "tfrecord.h"

namespace scriptmode {

struct Settings {
  std::string channel;
  std::string record_format;
  std::string pipe_dir;
  std::string config_dir;
  std::string state_dir;
  int64_t batch_size = 0;  // 0 for scalars
  float timeout = 0;       // seconds
};

// The folder a setting names, else the one below this process's training folder: the hosts of a job may be processes
// with a folder each, and where the dataset was made need not be where it runs.
inline std::string Folder(const std::string& given, const char* below) {
  if (!given.empty()) return given;
  const char* base = std::getenv("SAGEMAKER_BASE_DIR");
  return std::string(base && *base ? base : "/opt/ml") + "/" + below;
}

inline std::unique_ptr<Framing> MakeFraming(const Settings& settings) {
  if (settings.record_format == "TFRecord") return std::make_unique<TfRecords>();
  if (settings.record_format == "RecordIO") return std::make_unique<RecordIo>();
  if (settings.record_format == "TextLine") return std::make_unique<TextLines>();
  throw Problem(kInvalidArgument, "record_format " + Quoted(settings.record_format) +
                                      " is none of 'RecordIO', 'TFRecord', 'TextLine'");
}

class Reader {
 public:
  explicit Reader(const Settings& settings)
      : settings_(settings),
        framing_(MakeFraming(settings)),
        epochs_(Folder(settings.pipe_dir, "input/data"), ConfigFile(settings), Folder(settings.state_dir, "pipe_state"),
                settings.channel),
        began_(Clock::now()) {
    CheckChannel(ConfigFile(settings), settings.channel);
  }

  bool is_batched() const { return settings_.batch_size > 0; }

  // Fills `records`; gives how many of them to take now, whole batches of `columns` each. None: the pipe is idle, call
  // again. Raises at the end.
  size_t Next(Records* records, size_t* columns) {
    if (failure_) throw *failure_;
    try {
      return Read(records, columns);
    } catch (const Problem& problem) {
      if (problem.code == kOutOfRange) throw;
      Fail(problem);
      throw *failure_;
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  // How long a call waits for an idle pipe. Between calls TensorFlow looks whether the iterator is still wanted.
  static constexpr std::chrono::milliseconds kPatience{100};
  static constexpr std::chrono::milliseconds kLook{10};
  static constexpr size_t kBeyond = size_t{8} << 10;
  static constexpr int kPipeSize = 1 << 20;
  // What a call hands over at most, in bytes of the stream, if that is a whole batch.
  static constexpr size_t kEnough = size_t{1} << 20;
  static constexpr size_t kManyRecords = 4096;
  enum Filling { kSome, kNothing, kEnd };

  static std::string ConfigFile(const Settings& settings) {
    return Folder(settings.config_dir, "input/config") + "/inputdataconfig.json";
  }

  size_t Read(Records* records, size_t* columns) {
    *columns = settings_.batch_size > 0 ? static_cast<size_t>(settings_.batch_size) : 1;
    Clock::time_point until = Clock::now() + kPatience;
    if (!fifo_.is_open() && !window_.ended && !AwaitFifo(until)) return 0;
    uint64_t began = window_.position();
    for (;;) {
      size_t most = *columns > kManyRecords ? *columns : kManyRecords;
      Record record;
      while (records->size() < most && Cut(&record)) records->Add(record);
      size_t whole = records->size() / *columns * *columns;
      if (whole == 0 && failure_) throw *failure_;
      if (whole > 0 && (failure_ || whole >= most || window_.position() - began >= kEnough)) return whole;
      if (window_.ended) return Remainder(*records, whole, columns);
      Filling filling = Fill();
      if (filling == kEnd) {
        window_.ended = true;
        // The producer goes on with the next epoch.
        fifo_.Close();
      } else if (filling == kNothing) {
        if (whole > 0) return whole;
        if (!AwaitBytes(until)) return 0;
      }
    }
  }

  // Takes the next record. What is wrong with it is told after the records before it were handed over.
  bool Cut(Record* record) {
    try {
      return framing_->Next(window_, record);
    } catch (const Problem& problem) {
      Fail(Problem(problem.code, epochs_.path() + ": " + problem.what()));
      return false;
    }
  }

  void Fail(const Problem& problem) {
    if (failure_) return;
    failure_ = std::make_unique<Problem>(problem.code, "channel " + Quoted(settings_.channel) + ": " + problem.what());
  }

  // What is left where the stream ended: whole batches, then the last one.
  size_t Remainder(const Records& records, size_t whole, size_t* columns) {
    if (whole > 0) return whole;
    if (records.size() > 0) return *columns = records.size();
    throw Problem(kOutOfRange, "end of epoch " + std::to_string(epochs_.epoch()));
  }

  bool AwaitFifo(Clock::time_point until) {
    while (!epochs_.Open(&fifo_)) {
      if (Clock::now() >= until) {
        CheckTime();
        return false;
      }
      poll(nullptr, 0, static_cast<int>(kLook.count()));
    }
    // May be refused where the user's pipes hold much already.
    fcntl(fifo_.number(), F_SETPIPE_SZ, kPipeSize);
    return true;
  }

  bool AwaitBytes(Clock::time_point until) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    struct pollfd waited = {fifo_.number(), POLLIN, 0};
    if (left > 0 && poll(&waited, 1, static_cast<int>(left)) > 0) return true;
    if (!is_connected_) CheckTime();
    return false;
  }

  void CheckTime() const {
    std::chrono::duration<float> waited = Clock::now() - began_;
    if (waited.count() < settings_.timeout) return;
    std::string seconds = std::to_string(settings_.timeout);
    std::string path = epochs_.path();
    throw Problem(kDeadlineExceeded,
                  (fifo_.is_open() ? "nobody opened " + path + " for writing" : path + " did not come") + " within " +
                      seconds.substr(0, seconds.find('.') + 2) +
                      " s; it is the platform that makes and fills it: see the job's log for why it does not, or give "
                      "a longer timeout");
  }

  // Reads once, without waiting.
  Filling Fill() {
    for (;;) {
      Body& body = framing_->body();
      size_t direct = body.room(), room;
      uint8_t* free = window_.Room(&room);
      // Records as large as this one are to be read to where they stay, too.
      if (direct > 0 && room > kBeyond) room = kBeyond;
      struct iovec parts[2] = {{body.rest(), direct}, {free, room}};
      ssize_t count = direct > 0 ? readv(fifo_.number(), parts, 2) : read(fifo_.number(), free, room);
      if (count > 0) {
        is_connected_ = true;
        size_t taken = static_cast<size_t>(count), of_body = taken < direct ? taken : direct;
        if (of_body > 0) body.Filled(of_body);
        window_.Passed(of_body);
        window_.Filled(taken - of_body);
        return kSome;
      }
      if (count == 0) {
        if (is_connected_) return kEnd;
        // Before the first writer a FIFO reads as if it had ended, but is polled neither readable nor hung up.
        struct pollfd state = {fifo_.number(), POLLIN, 0};
        if (poll(&state, 1, 0) == 0) return kNothing;
        is_connected_ = true;
      } else if (errno == EAGAIN) {
        is_connected_ = true;
        return kNothing;
      } else if (errno != EINTR) {
        throw Problem(kInternal, std::string("reading failed: ") + std::strerror(errno));
      }
    }
  }

  const Settings settings_;
  const std::unique_ptr<Framing> framing_;
  Epochs epochs_;
  Window window_;
  Descriptor fifo_;
  const Clock::time_point began_;
  std::unique_ptr<Problem> failure_;
  bool is_connected_ = false;  // a writer was there
};

}  // namespace scriptmode
