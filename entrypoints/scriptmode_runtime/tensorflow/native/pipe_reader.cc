// Three TensorFlow operations that read a channel in pipe mode: open, next, close.
//
// They are the parts of a GeneratorDataset. Nothing of TensorFlow but its C API is used, so one binary is for all of
// its versions. Kernels of that API cannot wait asynchronously nor see that they were cancelled; so a call that finds
// the pipe idle soon gives an empty vector, and whoever called it asks again if there is still somebody to ask for.

#include <malloc.h>

#include <map>
#include <memory>
#include <mutex>

#include "reader.h"
#include "tensorflow_c_api.h"

namespace scriptmode {
namespace {

class Status {
 public:
  operator TF_Status*() const { return status_.get(); }

  void Set(Code code, const std::string& text) { TF_SetStatus(*this, code, text.c_str()); }
  // Raises what a call left here.
  void Check() const {
    if (TF_GetCode(*this) != 0) throw Problem(static_cast<Code>(TF_GetCode(*this)), TF_Message(*this));
  }

 private:
  const std::unique_ptr<TF_Status, decltype(&TF_DeleteStatus)> status_{TF_NewStatus(), TF_DeleteStatus};
};

// Runs `act`; what it raises is told to TensorFlow by `fail`.
template <typename Act, typename Fail>
void Guarded(Act act, Fail fail) {
  Status status;
  try {
    act();
    return;
  } catch (const Problem& problem) {
    status.Set(problem.code, problem.what());
  } catch (const std::bad_alloc&) {
    status.Set(kResourceExhausted, "no memory for a record or its batch; a smaller batch_size needs less");
  }
  fail(status);
}

// The readers that are open, by what the operations call them.
class Readers {
 public:
  struct Open {
    explicit Open(const Settings& settings) : reader(settings) {}
    Reader reader;
    Records records;
  };

  int64_t Add(std::unique_ptr<Open> opened) {
    std::lock_guard<std::mutex> lock(mutex_);
    opened_[++last_] = std::move(opened);
    return last_;
  }

  // A GeneratorDataset closes no reader while it is asked for more.
  Open* Get(int64_t name) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = opened_.find(name);
    if (found == opened_.end()) throw Problem(kInternal, "the reader of the pipe is closed");
    return found->second.get();
  }

  void Remove(int64_t name) {
    std::lock_guard<std::mutex> lock(mutex_);
    opened_.erase(name);
  }

 private:
  std::mutex mutex_;
  std::map<int64_t, std::unique_ptr<Open>> opened_;
  int64_t last_ = 0;
};

Readers& AllReaders() {
  static Readers* readers = new Readers;  // threads may use it until the process is gone
  return *readers;
}

void* Allocate(TF_OpKernelContext* context, int type, const int64_t* dimensions, int rank, size_t size) {
  Status status;
  TF_Tensor* tensor = TF_AllocateOutput(context, 0, type, dimensions, rank, size, status);
  status.Check();
  void* data = TF_TensorData(tensor);
  TF_DeleteTensor(tensor);  // the context holds the memory
  return data;
}

int64_t Input(TF_OpKernelContext* context) {
  Status status;
  TF_Tensor* tensor = nullptr;
  TF_GetInput(context, 0, &tensor, status);
  status.Check();
  int64_t value = *static_cast<const int64_t*>(TF_TensorData(tensor));
  TF_DeleteTensor(tensor);
  return value;
}

std::string TextAttribute(TF_OpKernelConstruction* context, const char* name) {
  Status status;
  int32_t list_size = 0, size = 0;
  TF_OpKernelConstruction_GetAttrSize(context, name, &list_size, &size, status);
  status.Check();
  std::string value(static_cast<size_t>(size), '\0');
  TF_OpKernelConstruction_GetAttrString(context, name, &value[0], value.size(), status);
  status.Check();
  return value;
}

int64_t NumberAttribute(TF_OpKernelConstruction* context, const char* name) {
  Status status;
  int64_t value = 0;
  TF_OpKernelConstruction_GetAttrInt64(context, name, &value, status);
  status.Check();
  return value;
}

void* MakeSettings(TF_OpKernelConstruction* context) {
  auto settings = std::make_unique<Settings>();
  Guarded(
      [&] {
        settings->channel = TextAttribute(context, "channel");
        settings->record_format = TextAttribute(context, "record_format");
        settings->pipe_dir = TextAttribute(context, "pipe_dir");
        settings->config_dir = TextAttribute(context, "config_dir");
        settings->state_dir = TextAttribute(context, "state_dir");
        settings->batch_size = NumberAttribute(context, "batch_size");
        Status status;
        TF_OpKernelConstruction_GetAttrFloat(context, "timeout", &settings->timeout, status);
        status.Check();
      },
      [&](TF_Status* status) { TF_OpKernelConstruction_Failure(context, status); });
  return settings.release();
}

template <typename Act>
void Computed(TF_OpKernelContext* context, Act act) {
  Guarded(act, [&](TF_Status* status) { TF_OpKernelContext_Failure(context, status); });
}

// Lets the C library keep the memory of large records for the next ones. These are the values it comes to itself in a
// program that frees large blocks (mallopt(3), M_MMAP_THRESHOLD); but TensorFlow's GeneratorDataset, from 2.21 at the
// latest, holds it to 128 KiB whenever one is made, and each page of a larger record would be asked of the kernel anew.
void KeepLargeBlocks() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
#endif
}

void Open(void* settings, TF_OpKernelContext* context) {
  KeepLargeBlocks();
  Computed(context, [&] {
    auto opened = std::make_unique<Readers::Open>(*static_cast<const Settings*>(settings));
    void* name = Allocate(context, kInt64, nullptr, 0, sizeof(int64_t));
    *static_cast<int64_t*>(name) = AllReaders().Add(std::move(opened));
  });
}

void Next(void*, TF_OpKernelContext* context) {
  Computed(context, [&] {
    Readers::Open* opened = AllReaders().Get(Input(context));
    size_t columns = 1;
    size_t count = opened->reader.Next(&opened->records, &columns);
    int64_t dimensions[] = {static_cast<int64_t>(count / columns), static_cast<int64_t>(columns)};
    int rank = opened->reader.is_batched() ? 2 : 1;
    opened->records.MoveTo(Allocate(context, kString, dimensions, rank, count * sizeof(Record)), count);
  });
}

void Close(void*, TF_OpKernelContext* context) {
  Computed(context, [&] {
    AllReaders().Remove(Input(context));
    *static_cast<int64_t*>(Allocate(context, kInt64, nullptr, 0, sizeof(int64_t))) = 0;
  });
}

TF_OpDefinitionBuilder* Definition(const char* name, const char* output) {
  TF_OpDefinitionBuilder* builder = TF_NewOpDefinitionBuilder(name);
  TF_OpDefinitionBuilderAddOutput(builder, output);
  TF_OpDefinitionBuilderSetIsStateful(builder, true);
  TF_OpDefinitionBuilderSetShapeInferenceFunction(builder, TF_ShapeInferenceContextSetUnknownShape);
  return builder;
}

void Register(const char* name, TF_OpDefinitionBuilder* definition, void (*compute)(void*, TF_OpKernelContext*),
              void* (*create)(TF_OpKernelConstruction*) = nullptr, void (*destroy)(void*) = nullptr) {
  Status status;
  TF_RegisterOpDefinition(definition, status);
  TF_RegisterKernelBuilder(name, TF_NewKernelBuilder(name, "CPU", create, compute, destroy), status);
}

struct Registration {
  Registration() {
    TF_OpDefinitionBuilder* open = Definition("ScriptmodePipeOpen", "reader: int64");
    for (const char* attribute :
         {"channel: string", "record_format: string", "pipe_dir: string", "config_dir: string", "state_dir: string",
          "batch_size: int", "timeout: float"}) {
      TF_OpDefinitionBuilderAddAttr(open, attribute);
    }
    Register("ScriptmodePipeOpen", open, Open, MakeSettings,
             [](void* settings) { delete static_cast<Settings*>(settings); });
    TF_OpDefinitionBuilder* next = Definition("ScriptmodePipeNext", "records: string");
    TF_OpDefinitionBuilderAddInput(next, "reader: int64");
    Register("ScriptmodePipeNext", next, Next);
    TF_OpDefinitionBuilder* close = Definition("ScriptmodePipeClose", "closed: int64");
    TF_OpDefinitionBuilderAddInput(close, "reader: int64");
    Register("ScriptmodePipeClose", close, Close);
  }
} registration;

}  // namespace
}  // namespace scriptmode
