/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The rates of links, by the name of a device: of those between the devices of a node, and of the
 * network between nodes of the systems that its vendor sells or describes. The sources of all rates
 * are in docs/definitions.md, "Links".
 */
struct rp_link {
    const char *name;
    double bytes_per_s; /* from a device to all others together, each way */
};

/* Returns NULL if not known. A device whose name contains PCIe has no other link, as far as is
   known. */
const struct rp_link *rp_link_of_device(const char *device);

/* Returns the share of one device in the network; NULL if not known. */
const struct rp_link *rp_link_between_nodes(const char *device);
