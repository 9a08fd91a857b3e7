"""What of libfabric's interface is used, as its binary interface lays it out on 64-bit systems.

Nearly all of libfabric's calls are inline functions of its headers, which go through tables of
function pointers that objects carry: a fixed slot of a table is a call. What is not used of a table
is a `void *` here, and what comes after the last slot that is used is left out: a table begins with
its size, which is checked before a slot is read.

Pointers that Python only keeps and hands back (contexts, descriptors of regions, addresses of
buffers that outlive the call) are `uintptr_t`: it is passed as a pointer is, and is an int here.

`declared.py` is made of this by `tools/package fabric_declarations`: nothing is parsed at run time.
Source: libfabric 1.17's man pages fi_getinfo.3 to fi_cq.3 for names and meaning, its headers
for the order of fields; reference ofi.md B1, B2 for what changed since (fields are appended only).
"""

from __future__ import annotations

from typing import Final

ATTRIBUTES: Final = """
struct fi_tx_attr {
    uint64_t caps, mode, op_flags, msg_order, comp_order;
    size_t inject_size, size, iov_limit, rma_iov_limit;
    uint32_t tclass;
};
struct fi_rx_attr {
    uint64_t caps, mode, op_flags, msg_order, comp_order;
    size_t total_buffered_recv, size, iov_limit;
};
struct fi_ep_attr {
    int type;
    uint32_t protocol, protocol_version;
    size_t max_msg_size, msg_prefix_size;
    size_t max_order_raw_size, max_order_war_size, max_order_waw_size;
    uint64_t mem_tag_format;
    size_t tx_ctx_cnt, rx_ctx_cnt, auth_key_size;
    uint8_t *auth_key;
};
struct fi_domain_attr {
    void *domain;
    char *name;
    int threading, control_progress, data_progress, resource_mgmt, av_type, mr_mode;
    size_t mr_key_size, cq_data_size, cq_cnt, ep_cnt, tx_ctx_cnt, rx_ctx_cnt;
    size_t max_ep_tx_ctx, max_ep_rx_ctx, max_ep_stx_ctx, max_ep_srx_ctx, cntr_cnt, mr_iov_limit;
    uint64_t caps, mode;
    uint8_t *auth_key;
    size_t auth_key_size, max_err_data, mr_cnt;
    uint32_t tclass;
};
struct fi_fabric_attr {
    void *fabric;
    char *name, *prov_name;
    uint32_t prov_version, api_version;
};
struct fi_info {
    struct fi_info *next;
    uint64_t caps, mode;
    uint32_t addr_format;
    size_t src_addrlen, dest_addrlen;
    void *src_addr, *dest_addr, *handle;
    struct fi_tx_attr *tx_attr;
    struct fi_rx_attr *rx_attr;
    struct fi_ep_attr *ep_attr;
    struct fi_domain_attr *domain_attr;
    struct fi_fabric_attr *fabric_attr;
    void *nic;
};
"""

OBJECTS: Final = """
struct fi_ops;
struct fid { size_t fclass; void *context; struct fi_ops *ops; };
struct fi_ops {
    size_t size;
    int (*close)(struct fid *);
    int (*bind)(struct fid *, struct fid *other, uint64_t flags);
    int (*control)(struct fid *, int command, void *argument);
};

struct fid_fabric; struct fid_domain; struct fid_av; struct fid_cq; struct fid_ep; struct fid_mr;

struct fi_ops_fabric {
    size_t size;
    int (*domain)(struct fid_fabric *, struct fi_info *, struct fid_domain **, void *context);
    void *passive_ep, *eq_open, *wait_open;
    int (*trywait)(struct fid_fabric *, struct fid **, int count);
};
struct fid_fabric { struct fid fid; struct fi_ops_fabric *ops; uint32_t api_version; };

struct fi_av_attr {
    int type, rx_ctx_bits;
    size_t count, ep_per_node;
    const char *name;
    void *map_addr;
    uint64_t flags;
};
struct fi_cq_attr {
    size_t size;
    uint64_t flags;
    int format, wait_obj, signaling_vector, wait_cond;
    void *wait_set;
};
struct fi_ops_domain {
    size_t size;
    int (*av_open)(struct fid_domain *, struct fi_av_attr *, struct fid_av **, void *context);
    int (*cq_open)(struct fid_domain *, struct fi_cq_attr *, struct fid_cq **, void *context);
    int (*endpoint)(struct fid_domain *, struct fi_info *, struct fid_ep **, void *context);
    int (*scalable_ep)(struct fid_domain *, struct fi_info *, struct fid_ep **, void *context);
};
struct fi_ops_mr {
    size_t size;
    int (*reg)(struct fid *, const void *memory, size_t size, uint64_t access, uint64_t offset,
               uint64_t requested_key, uint64_t flags, struct fid_mr **, void *context);
};
struct fid_domain { struct fid fid; struct fi_ops_domain *ops; struct fi_ops_mr *mr; };
struct fid_mr { struct fid fid; uintptr_t mem_desc; uint64_t key; };

struct fi_ops_av {
    size_t size;
    int (*insert)(struct fid_av *, const void *name, size_t count, uint64_t *address,
                  uint64_t flags, void *context);
    void *insertsvc, *insertsym;
    int (*remove)(struct fid_av *, uint64_t *address, size_t count, uint64_t flags);
};
struct fid_av { struct fid fid; struct fi_ops_av *ops; };
"""

QUEUES: Final = """
struct fi_cq_msg_entry { uintptr_t op_context; uint64_t flags; size_t len; };
struct fi_cq_err_entry {
    uintptr_t op_context;
    uint64_t flags;
    size_t len;
    void *buf;
    uint64_t data, tag;
    size_t olen;
    int err, prov_errno;
    void *err_data;
    size_t err_data_size;
};
struct fi_ops_cq {
    size_t size;
    ssize_t (*read)(struct fid_cq *, void *entries, size_t count);
    ssize_t (*readfrom)(struct fid_cq *, void *entries, size_t count, uint64_t *sources);
    ssize_t (*readerr)(struct fid_cq *, struct fi_cq_err_entry *, uint64_t flags);
    void *sread, *sreadfrom, *signal;
    const char *(*strerror)(struct fid_cq *, int number, const void *data, char *, size_t);
};
struct fid_cq { struct fid fid; struct fi_ops_cq *ops; };
"""

ENDPOINTS: Final = """
struct fi_ops_ep {
    size_t size;
    void *cancel, *getopt, *setopt;
    int (*tx_ctx)(struct fid_ep *, int index, struct fi_tx_attr *, struct fid_ep **, void *context);
    int (*rx_ctx)(struct fid_ep *, int index, struct fi_rx_attr *, struct fid_ep **, void *context);
};
struct fi_ops_cm {
    size_t size;
    void *setname;
    int (*getname)(struct fid *, void *name, size_t *size);
};
struct fi_ops_msg {
    size_t size;
    ssize_t (*recv)(struct fid_ep *, void *, size_t, uintptr_t desc, uint64_t from,
                    uintptr_t context);
    void *recvv, *recvmsg;
    ssize_t (*send)(struct fid_ep *, const void *, size_t, uintptr_t desc, uint64_t to,
                    uintptr_t context);
    void *sendv, *sendmsg;
    ssize_t (*inject)(struct fid_ep *, const void *, size_t, uint64_t to);
};
struct fi_ops_rma {
    size_t size;
    ssize_t (*read)(struct fid_ep *, void *, size_t, uintptr_t desc, uint64_t from,
                    uint64_t address, uint64_t key, uintptr_t context);
    void *readv, *readmsg;
    ssize_t (*write)(struct fid_ep *, const void *, size_t, uintptr_t desc, uint64_t to,
                     uint64_t address, uint64_t key, uintptr_t context);
};
struct fi_ops_atomic {
    size_t size;
    ssize_t (*write)(struct fid_ep *, const void *operand, size_t count, uintptr_t desc,
                     uint64_t to, uint64_t address, uint64_t key, int datatype, int op,
                     uintptr_t context);
    void *writev, *writemsg, *inject;
    ssize_t (*readwrite)(struct fid_ep *, const void *operand, size_t count, uintptr_t desc,
                         void *result, uintptr_t result_desc, uint64_t to, uint64_t address,
                         uint64_t key, int datatype, int op, uintptr_t context);
    void *readwritev, *readwritemsg;
    ssize_t (*compwrite)(struct fid_ep *, const void *operand, size_t count, uintptr_t desc,
                         const void *compare, uintptr_t compare_desc, void *result,
                         uintptr_t result_desc, uint64_t to, uint64_t address, uint64_t key,
                         int datatype, int op, uintptr_t context);
    void *compwritev, *compwritemsg;
    int (*writevalid)(struct fid_ep *, int datatype, int op, size_t *count);
    int (*readwritevalid)(struct fid_ep *, int datatype, int op, size_t *count);
    int (*compwritevalid)(struct fid_ep *, int datatype, int op, size_t *count);
};
struct fid_ep {
    struct fid fid;
    struct fi_ops_ep *ops;
    struct fi_ops_cm *cm;
    struct fi_ops_msg *msg;
    struct fi_ops_rma *rma;
    void *tagged;
    struct fi_ops_atomic *atomic;
};
"""

FUNCTIONS: Final = """
uint32_t fi_version(void);
int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
               const struct fi_info *hints, struct fi_info **);
void fi_freeinfo(struct fi_info *);
struct fi_info *fi_dupinfo(const struct fi_info *);
int fi_fabric(struct fi_fabric_attr *, struct fid_fabric **, void *context);
const char *fi_strerror(int number);
char *fi_tostr(const void *, int what);

int setenv(const char *name, const char *value, int overwrite);
"""

ALL: Final = ATTRIBUTES + OBJECTS + QUEUES + ENDPOINTS + FUNCTIONS
