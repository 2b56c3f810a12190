// What inputdataconfig.json says of a channel.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "problem.h"

namespace scriptmode {

// Returns what follows `"name":` in a JSON text; empty if nothing does. Names need no escapes.
inline std::string After(const std::string& name, const std::string& text) {
  const std::string key = '"' + name + '"';
  for (size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1)) {
    size_t colon = text.find_first_not_of(" \t\r\n", at + key.size());
    if (colon == std::string::npos || text[colon] != ':') continue;  // it is a value
    size_t value = text.find_first_not_of(" \t\r\n", colon + 1);
    return value == std::string::npos ? "" : text.substr(value);
  }
  return "";
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
  std::string object = After(channel, ReadFile(path));
  if (object.empty()) {
    throw Problem(kNotFound, "channel " + Quoted(channel) + " is not in " + path +
                                 ": give the job's inputs one of that name");
  }
  std::string mode = After("TrainingInputMode", object.substr(0, object.find('}')));
  if (!mode.empty() && mode.rfind("\"Pipe\"", 0) != 0) {
    throw Problem(kFailedPrecondition, "channel " + Quoted(channel) + " is in " + mode.substr(1, mode.find('"', 1) - 1) +
                                           " mode (" + path +
                                           "): read its files, or give it as TrainingInput(..., input_mode='Pipe')");
  }
}

}  // namespace scriptmode
