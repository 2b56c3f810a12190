// What inputdataconfig.json says of a channel.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "problem.h"

namespace scriptmode {

// The text of the JSON string whose first quote is at `*at`, which becomes the last one. Names of channels are ASCII: what
// else is escaped is of no interest here.
inline std::string JsonText(const std::string& document, size_t* at) {
  std::string text;
  while (++*at < document.size() && document[*at] != '"') {
    if (document[*at] == '\\' && *at + 1 < document.size()) ++*at;
    text += document[*at];
  }
  return text;
}

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
  std::string mode = "Pipe", names, object, member;
  bool is_there = false;
  int depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (std::strchr("{[", text[at])) ++depth;
    if (std::strchr("}]", text[at])) --depth;
    if (text[at] != '"') continue;
    std::string word = JsonText(text, &at);
    size_t next = text.find_first_not_of(" \t\r\n", at + 1);
    if (next == std::string::npos || text[next] != ':') {
      if (depth == 2 && object == channel && member == "TrainingInputMode") mode = word;
      continue;
    }
    member = word;
    if (depth == 1) {
      object = word;
      is_there = is_there || word == channel;
      names += (names.empty() ? "" : ", ") + Quoted(word);
    }
  }
  size_t first = text.find_first_not_of(" \t\r\n");
  if (depth != 0 || first == std::string::npos || text[first] != '{') {
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
