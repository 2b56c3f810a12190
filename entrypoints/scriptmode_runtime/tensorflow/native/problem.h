// What goes wrong, as TensorFlow's codes (tf_status.h) and a text for whoever runs the job.
#pragma once

#include <stdexcept>
#include <string>

namespace scriptmode {

enum Code {
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kOutOfRange = 11,
  kInternal = 13,
  kDataLoss = 15,
};

struct Problem : std::runtime_error {
  Problem(Code code, const std::string& text) : std::runtime_error(text), code(code) {}
  Code code;
};

inline std::string Quoted(const std::string& name) { return "'" + name + "'"; }

}  // namespace scriptmode
