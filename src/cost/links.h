/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What links can carry, by the name of a device: those between the devices of a node, and the
 * network between nodes of the systems that its vendor sells or describes with it. The sources of
 * all rates are in docs/definitions.md, "Links".
 */
struct rp_link {
    const char *name;
    double bytes_per_s; /* of a device to all others together, each way */
};

/* NULL: not known. A device whose name says PCIe has no other link, as far as is known. */
const struct rp_link *rp_link_of_device(const char *device);

/* The network, as much of it as there is for one device; NULL: not known. */
const struct rp_link *rp_link_between_nodes(const char *device);
