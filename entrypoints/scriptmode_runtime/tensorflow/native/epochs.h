// Which FIFO of a channel is next. A file in the state folder says it to every process of the run.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "problem.h"

namespace scriptmode {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.number_) { other.number_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { Close(); }

  void Close() {
    if (number_ >= 0) close(number_);
    number_ = -1;
  }
  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

class Epochs {
 public:
  Epochs(std::string pipe_dir, std::string config_file, std::string state_dir, std::string channel)
      : pipe_dir_(std::move(pipe_dir)),
        config_file_(std::move(config_file)),
        state_dir_(std::move(state_dir)),
        channel_(std::move(channel)) {}

  // Opens the next FIFO, if it is there, and notes that it is taken.
  bool Open(Descriptor* fifo) {
    Descriptor file = Lock();
    State state = Read(file);
    epoch_ = state.next;
    // An earlier run in the same folder had another first FIFO.
    if (state.next > 0 && !Identity(Path(0)).empty() && Identity(Path(0)) != state.first) epoch_ = 0;
    Descriptor opened(open(path().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (!opened.is_open()) {
      if (errno == ENOENT) return false;
      throw Problem(kFailedPrecondition, path() + " cannot be opened: " + std::strerror(errno));
    }
    struct statx found;
    if (!Look(opened.number(), "", AT_EMPTY_PATH, &found) || !S_ISFIFO(found.stx_mode)) {
      throw Problem(kFailedPrecondition,
                    path() + " is no FIFO, as the channel of a job in pipe mode has for each epoch");
    }
    // Of what was opened: its name may be gone by now, if the epoch is a short one.
    if (epoch_ == 0) state.first = Identity(found);
    Write(file, {epoch_ + 1, state.first});
    *fifo = std::move(opened);
    return true;
  }

  int64_t epoch() const { return epoch_; }
  std::string path() const { return Path(epoch_); }

 private:
  struct State {
    int64_t next = 0;
    std::string first;
  };

  std::string Path(int64_t epoch) const { return pipe_dir_ + "/" + channel_ + "_" + std::to_string(epoch); }
  std::string StateFile() const { return state_dir_ + "/" + channel_; }

  Descriptor Lock() {
    for (size_t at = state_dir_.find('/', 1); ; at = state_dir_.find('/', at + 1)) {
      mkdir(state_dir_.substr(0, at).c_str(), 0777);
      if (at == std::string::npos) break;
    }
    Descriptor file(open(StateFile().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (!file.is_open() || flock(file.number(), LOCK_EX) != 0) {
      throw Unwritable();
    }
    return file;
  }

  State Read(const Descriptor& file) const {
    char bytes[1024];
    ssize_t count = pread(file.number(), bytes, sizeof(bytes), 0);
    std::string text(bytes, count > 0 ? static_cast<size_t>(count) : 0);
    size_t first = text.find('\n'), second = first == std::string::npos ? first : text.find('\n', first + 1);
    if (second == std::string::npos || text.back() != '\n' || text.substr(0, first) != Run()) return {};
    return {std::atoll(text.c_str() + first + 1), text.substr(second + 1, text.size() - second - 2)};
  }

  void Write(const Descriptor& file, const State& state) const {
    std::string text = Run() + "\n" + std::to_string(state.next) + "\n" + state.first + "\n";
    if (pwrite(file.number(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) ||
        ftruncate(file.number(), static_cast<off_t>(text.size())) != 0) {
      throw Unwritable();
    }
  }

  Problem Unwritable() const {
    return Problem(kFailedPrecondition, StateFile() + ", which says what epoch is next, cannot be written (" +
                                            std::strerror(errno) + "); state_dir names another folder");
  }

  // A job has its name, and each start of one on a host writes its configuration anew.
  std::string Run() const {
    const char* job = std::getenv("TRAINING_JOB_NAME");
    struct statx found;
    bool is_there = Look(AT_FDCWD, config_file_, 0, &found);
    return std::string(job ? job : "") + " " + Identity(config_file_) + " " +
           (is_there ? Text(found.stx_mtime.tv_sec, found.stx_mtime.tv_nsec) : "");
  }

  // Tells a file from all others that had its name before; empty if there is none.
  static std::string Identity(const std::string& path) {
    struct statx found;
    // A FIFO's other times change with what is written into it.
    return Look(AT_FDCWD, path, 0, &found) ? Identity(found) : "";
  }

  static std::string Identity(const struct statx& found) {
    return Text(found.stx_dev_major, found.stx_dev_minor) + ":" + std::to_string(found.stx_ino) + ":" +
           Text(found.stx_btime.tv_sec, found.stx_btime.tv_nsec);
  }

  // By the kernel's name: the C library's stat would bind the binary to a recent one.
  static bool Look(int folder, const std::string& path, int flags, struct statx* found) {
    constexpr unsigned kWanted = STATX_TYPE | STATX_INO | STATX_MTIME | STATX_BTIME;
    return syscall(SYS_statx, folder, path.c_str(), flags, kWanted, found) == 0;
  }

  static std::string Text(int64_t first, int64_t second) {
    return std::to_string(first) + "." + std::to_string(second);
  }

  const std::string pipe_dir_;
  const std::string config_file_;
  const std::string state_dir_;
  const std::string channel_;
  int64_t epoch_ = 0;
};

}  // namespace scriptmode
