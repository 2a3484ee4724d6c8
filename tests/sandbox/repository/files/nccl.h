/* Stand-in for NCCL's header. */
#ifndef NCCL_H_
#define NCCL_H_
#define NCCL_MAJOR @NCCL_MAJOR@
#define NCCL_MINOR @NCCL_MINOR@
#define NCCL_PATCH @NCCL_PATCH@
#define NCCL_SUFFIX ""
#define NCCL_VERSION_CODE @NCCL_CODE@
#endif
