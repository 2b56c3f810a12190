// What inputdataconfig.json says of a channel.
#pragma once

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "problem.h"

namespace scriptmode {

// Walks through a JSON document; of values it keeps only texts.
class Json {
 public:
  explicit Json(const std::string& text) : at_(text.c_str()), end_(at_ + text.size()) {}

  // Calls `member(name)` for each member of an object; it has to take the value.
  template <typename Member>
  void Object(Member member) {
    Take('{');
    if (Took('}')) return;
    do {
      std::string name = Text();
      Take(':');
      member(name);
    } while (Took(','));
    Take('}');
  }

  std::string Text() {
    Take('"');
    std::string text;
    while (at_ < end_ && *at_ != '"') {
      if (*at_ == '\\') Escaped(&text);
      else text += *at_++;
    }
    Take('"', false);
    return text;
  }

  bool IsText() { return Peek() == '"'; }
  bool IsObject() { return Peek() == '{'; }

  void Skip() {
    if (++depth_ > 100) throw Malformed();
    if (IsObject()) {
      Object([this](const std::string&) { Skip(); });
    } else if (IsText()) {
      Text();
    } else if (Took('[')) {
      if (!Took(']')) {
        do Skip();
        while (Took(','));
        Take(']');
      }
    } else {
      const char* began = at_;
      while (at_ < end_ && (std::strchr("+-.", *at_) || std::isalnum(static_cast<unsigned char>(*at_)))) ++at_;
      if (at_ == began) throw Malformed();
    }
    --depth_;
  }

  struct Malformed {};

 private:
  char Peek() {
    while (at_ < end_ && std::strchr(" \t\r\n", *at_)) ++at_;
    return at_ < end_ ? *at_ : 0;
  }

  bool Took(char expected) {
    if (Peek() != expected) return false;
    ++at_;
    return true;
  }

  void Take(char expected, bool after_space = true) {
    if (after_space ? !Took(expected) : at_ == end_ || *at_++ != expected) throw Malformed();
  }

  // Names of channels are ASCII; what else is escaped is of no interest here.
  void Escaped(std::string* text) {
    if (end_ - at_ < 2) throw Malformed();
    *text += at_[1];
    at_ += 2;
  }

  const char* at_;
  const char* end_;
  int depth_ = 0;
};

inline std::string ReadFile(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) {
    throw Problem(kNotFound, path + " cannot be read (" + std::strerror(errno) +
                                 "): it says which channels a training host has; SAGEMAKER_BASE_DIR or config_dir "
                                 "names another folder");
  }
  std::string text;
  char part[4096];
  while (size_t count = std::fread(part, 1, sizeof(part), file)) text.append(part, count);
  std::fclose(file);
  return text;
}

// Raises unless the file has the channel, in pipe mode.
inline void CheckChannel(const std::string& path, const std::string& channel) {
  std::string text = ReadFile(path);
  std::string mode = "Pipe", names;
  bool is_there = false;
  Json json(text);
  try {
    json.Object([&](const std::string& name) {
      names += (names.empty() ? "" : ", ") + Quoted(name);
      if (name != channel || !json.IsObject()) return json.Skip();
      is_there = true;
      json.Object([&](const std::string& member) {
        if (member == "TrainingInputMode" && json.IsText()) mode = json.Text();
        else json.Skip();
      });
    });
  } catch (const Json::Malformed&) {
    throw Problem(kFailedPrecondition, path + " is no JSON object of channels");
  }
  if (!is_there) {
    throw Problem(kNotFound, "channel " + Quoted(channel) + " is not in " + path + "; the channels there are: " +
                                 (names.empty() ? "none" : names) + "; give the job's inputs one of that name");
  }
  if (mode != "Pipe") {
    throw Problem(kFailedPrecondition, "channel " + Quoted(channel) + " is in " + mode + " mode (" + path +
                                           "): read its files, or give it as TrainingInput(..., input_mode='Pipe')");
  }
}

}  // namespace scriptmode
