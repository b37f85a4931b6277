#include "gpu/libraries/blas_lt.h"

#ifdef ISONORM_CUBLASLT

#include <algorithm>
#include <optional>

#include "gpu/device.h"
#include "gpu/launch.h"
#include "gpu/memory.h"
#include "gpu/recorder.h"

namespace isonorm::gpu {
namespace {

constexpr size_t kWorkspace = size_t{32} << 20;  // recommended for Hopper by the library's manual

void must_lt(cublasStatus_t status, const char* what) {
  check_io(status == CUBLAS_STATUS_SUCCESS, "product: ", what, ": status ", static_cast<int>(status));
}

cudaDataType_t type_of(DType d) { return d == DType::f64 ? CUDA_R_64F : d == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F; }

// The alignment, in bytes, of an address or of a step in bytes.
int alignment(uintptr_t p) { return static_cast<int>(std::min<uintptr_t>(256, p ? p & (~p + 1) : 256)); }
int alignment(const void* p) { return alignment(reinterpret_cast<uintptr_t>(p)); }
int alignment(const void* p, const Batch& batch, const int64_t* steps, DType d) {
  int all = alignment(p);
  for (int i = 0; i < batch.rank; ++i) all = std::min(all, alignment(static_cast<uintptr_t>(steps[i] * size_of(d))));
  return all;
}

cublasLtEpilogue_t epilogue_of(const LtProduct& p) {
  switch (p.epilogue) {
    case Epilogue::gelu_tanh:
      if (p.aux) return p.bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
      return p.bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    case Epilogue::gelu_tanh_slope:
      return CUBLASLT_EPILOGUE_DGELU;
    case Epilogue::row_sums:
      return CUBLASLT_EPILOGUE_BGRADB;  // of a, which is the library's B
    default:
      return p.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  }
}

// False for products that no plan computes correctly, whatever the library says. It accesses the operands of an
// epilogue by 16 bytes without checking their alignment (https://github.com/pytorch/pytorch/issues/194497), which is a
// CUDA error that persists. It assumes that a bias has out's type.
bool possible(const Product& p, const Operands& o) {
  if (p.k == 0 || alignment(o.bias) < 16 || alignment(o.aux) < 16 || (p.bias && p.in != p.out)) return false;
  if (p.epilogue == Epilogue::none) return true;
  if (p.batch.count > 1 || p.add) return false;
  if (p.epilogue == Epilogue::row_sums) return !p.bias;
  return p.n % 8 == 0 && o.aux != o.out && (p.epilogue == Epilogue::gelu_tanh || (p.aux && !p.bias));
}

Lt* library() {
  const Library& cublas = cublas_lt();
  if (!cublas) return nullptr;
  static Lt* const lt = new Lt(LtFunctions::of(cublas), [to = &cublas](std::string why, bool epilogue) {
    epilogue ? to->left_epilogue() : to->refused(std::move(why));
  });
  return lt;
}

}  // namespace

LtFunctions LtFunctions::of(const Library& l) {
  LtFunctions f{};
  const auto get = [&](auto& to, const char* name) {
    to = l.function<std::remove_pointer_t<std::decay_t<decltype(to)>>>(name);
  };
  get(f.create, "cublasLtCreate");
  get(f.create_product, "cublasLtMatmulDescCreate");
  get(f.set_product, "cublasLtMatmulDescSetAttribute");
  get(f.destroy_product, "cublasLtMatmulDescDestroy");
  get(f.create_layout, "cublasLtMatrixLayoutCreate");
  get(f.set_layout, "cublasLtMatrixLayoutSetAttribute");
  get(f.destroy_layout, "cublasLtMatrixLayoutDestroy");
  get(f.create_preference, "cublasLtMatmulPreferenceCreate");
  get(f.set_preference, "cublasLtMatmulPreferenceSetAttribute");
  get(f.destroy_preference, "cublasLtMatmulPreferenceDestroy");
  get(f.find_algorithm, "cublasLtMatmulAlgoGetHeuristic");
  get(f.multiply, "cublasLtMatmul");
  return f;
}

// The library loops over the innermost dimension of the batch, the caller over the others.
LtProduct::LtProduct(const Product& p, const Operands& o, int device)
    : device(device),
      m(p.m),
      n(p.n),
      k(p.k),
      lda(p.b.column == 1 ? p.b.row : p.b.column),
      ldb(p.a.column == 1 ? p.a.row : p.a.column),
      batch(p.batch.rank ? p.batch.size[p.batch.rank - 1] : 1),
      step_a(p.batch.rank ? p.batch.b[p.batch.rank - 1] : 0),
      step_b(p.batch.rank ? p.batch.a[p.batch.rank - 1] : 0),
      transpose_a(p.b.column != 1),
      transpose_b(p.a.column != 1),
      bias(p.bias),
      add(p.add),
      aux(p.aux),
      tf32(p.in == DType::f32 && tf32_allowed()),
      in(p.in),
      out(p.out),
      epilogue(p.epilogue),
      align_a(alignment(o.b, p.batch, p.batch.b, p.in)),
      align_b(alignment(o.a, p.batch, p.batch.a, p.in)),
      align_out(std::min(alignment(o.out),
                         alignment(static_cast<uintptr_t>(p.batch.count > 1 ? p.m * p.n * size_of(p.out) : 0)))),
      align_bias(alignment(o.bias)),
      align_aux(alignment(o.aux)) {}

cublasLtHandle_t Lt::handle(int device) {
  cublasLtHandle_t& h = handles_[device];
  if (!h) must_lt(f_.create(&h), "cublasLtCreate");
  return h;
}

cublasLtMatrixLayout_t Lt::layout(DType dtype, int64_t rows, int64_t columns, int64_t leading, int64_t batch,
                                  int64_t step) {
  cublasLtMatrixLayout_t l = nullptr;
  must_lt(f_.create_layout(&l, type_of(dtype), static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), leading),
          "cublasLtMatrixLayoutCreate");
  const auto count = static_cast<int32_t>(batch);
  must_lt(f_.set_layout(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)), "batch count");
  must_lt(f_.set_layout(l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof(step)), "batch stride");
  return l;
}

void Lt::set_pointers(const Plan& plan, const LtProduct& p, const Operands& o) {
  const auto set = [&](cublasLtMatmulDescAttributes_t a, const void* pointer) {
    must_lt(f_.set_product(plan.product, a, &pointer, sizeof(pointer)), "pointer of an epilogue");
  };
  if (p.bias) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, o.bias);
  if (p.epilogue == Epilogue::row_sums)
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, o.aux);
  else if (p.aux)
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, o.aux);
}

void Lt::make(Plan& plan, const LtProduct& p, const Operands& o) {
  const cublasLtHandle_t lt = handle(p.device);
  const bool f64 = p.in == DType::f64;
  must_lt(f_.create_product(&plan.product,
                            f64      ? CUBLAS_COMPUTE_64F
                            : p.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                     : CUBLAS_COMPUTE_32F,
                            f64 ? CUDA_R_64F : CUDA_R_32F),
          "cublasLtMatmulDescCreate");
  const auto set = [&](cublasLtMatmulDescAttributes_t a, auto value) {
    must_lt(f_.set_product(plan.product, a, &value, sizeof(value)), "attribute of a product");
  };
  const auto operation = [](bool transpose) { return int32_t{transpose ? CUBLAS_OP_T : CUBLAS_OP_N}; };
  set(CUBLASLT_MATMUL_DESC_TRANSA, operation(p.transpose_a));
  set(CUBLASLT_MATMUL_DESC_TRANSB, operation(p.transpose_b));
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<uint32_t>(epilogue_of(p)));
  if (p.aux && p.epilogue != Epilogue::row_sums) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.n);
  set_pointers(plan, p, o);
  plan.a = layout(p.in, p.transpose_a ? p.k : p.n, p.transpose_a ? p.n : p.k, p.lda, p.batch, p.step_a);
  plan.b = layout(p.in, p.transpose_b ? p.m : p.k, p.transpose_b ? p.k : p.m, p.ldb, p.batch, p.step_b);
  plan.out = layout(p.out, p.n, p.m, p.n, p.batch, p.m * p.n);

  cublasLtMatmulPreference_t preference = nullptr;
  must_lt(f_.create_preference(&preference), "cublasLtMatmulPreferenceCreate");
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t a, auto value) {
    must_lt(f_.set_preference(preference, a, &value, sizeof(value)), "attribute of a preference");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspace);
  // Parts of a split depth are added from the workspace, in order and unrounded; otherwise the depth is not split.
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<uint32_t>(p.align_a));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<uint32_t>(p.align_b));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<uint32_t>(p.align_out));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<uint32_t>(p.align_out));
  int count = 0;
  const cublasStatus_t status =
      f_.find_algorithm(lt, plan.product, plan.a, plan.b, plan.out, plan.out, preference, 1, &plan.found, &count);
  plan.taken = status == CUBLAS_STATUS_SUCCESS && count > 0 && plan.found.state == CUBLAS_STATUS_SUCCESS;
  f_.destroy_preference(preference);
  check_io(plan.taken, "no algorithm");
}

void Lt::drop(Plan& plan) {
  if (plan.product) f_.destroy_product(plan.product);
  for (const cublasLtMatrixLayout_t l : {plan.a, plan.b, plan.out})
    if (l) f_.destroy_layout(l);
  plan = {};
}

void Lt::refuse(Plan& plan, const LtProduct& p, const std::string& why, bool epilogue) {
  (void)cudaGetLastError();  // clears the library's error, which is not from a launch of ours
  drop(plan);
  refused_(text(p.m, " x ", p.n, " x ", p.k, ", batch ", p.batch, ": ", why), epilogue);
}

Lt::Plan& Lt::plan_of(const LtProduct& p, const Operands& o) {
  const auto [at, fresh] = plans_.try_emplace(p);
  if (fresh) {
    try {
      make(at->second, p, o);
    } catch (const Error& e) {
      refuse(at->second, p, e.what(), p.bias || p.epilogue != Epilogue::none);
    }
  }
  return at->second;
}

bool Lt::product(const Product& p, const Operands& o, int device, cudaStream_t stream,
                 const std::function<void*(int64_t)>& memory) {
  if (!possible(p, o)) return false;
  const LtProduct key(p, o, device);
  std::lock_guard lock(mutex_);  // a plan's pointers belong to one call at a time
  Plan& plan = plan_of(key, o);
  if (!plan.taken) return false;
  set_pointers(plan, key, o);
  const float one = 1, beta = p.add;
  const double one64 = 1, beta64 = p.add;
  const bool f64 = p.in == DType::f64;
  const auto moved = [](const void* from, int64_t by, DType d) {
    return static_cast<const std::byte*>(from) + by * size_of(d);
  };
  for (int64_t i = 0; i < p.batch.count; i += key.batch) {
    int64_t a = 0, b = 0, left = i / key.batch;
    for (int d = p.batch.rank - 2; d >= 0; --d) {
      a += left % p.batch.size[d] * p.batch.a[d];
      b += left % p.batch.size[d] * p.batch.b[d];
      left /= p.batch.size[d];
    }
    void* const out = static_cast<std::byte*>(o.out) + i * p.m * p.n * size_of(p.out);
    const size_t bytes = plan.found.workspaceSize;
    const cublasStatus_t status = f_.multiply(
        handle(device), plan.product, f64 ? static_cast<const void*>(&one64) : &one, moved(o.b, b, p.in), plan.a,
        moved(o.a, a, p.in), plan.b, f64 ? static_cast<const void*>(&beta64) : &beta, out, plan.out, out, plan.out,
        &plan.found.algo, bytes ? memory(static_cast<int64_t>(bytes)) : nullptr, bytes, stream);
    if (status == CUBLAS_STATUS_SUCCESS) continue;
    if (i > 0) must_lt(status, "cublasLtMatmul, behind the first of a batch");
    refuse(plan, key, text("cublasLtMatmul: status ", static_cast<int>(status)), false);
    return false;
  }
  return true;
}

bool lt_product(const Product& p, const Operands& o, const Stream& stream) {
  Lt* const lt = library();
  if (!lt) return false;
  const OnDevice on(stream.index());
  std::optional<Scratch> workspace;
  if (!lt->product(p, o, stream.index(), stream.handle(), [&](int64_t bytes) {
        workspace.emplace(Device{DeviceKind::cuda, stream.index()}, bytes);
        return workspace->as<void>();
      }))
    return false;
  record(Recorded::Kind::launch, "product.cublaslt");
  finish_launch(cudaSuccess, "product.cublaslt", {}, stream);  // waits for this one, too, if launches are waited for
  return true;
}

}  // namespace isonorm::gpu

#else

namespace isonorm::gpu {

bool lt_product(const Product&, const Operands&, const Stream&) { return false; }

}  // namespace isonorm::gpu

#endif
