/* SPDX-License-Identifier: Apache-2.0 */
/* Rates are those of data sheets, halved where these add up both directions. */
#include "cost/links.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static const struct rp_link nvlink2 = {"NVLink 2", 150e9}, nvlink3 = {"NVLink 3", 300e9},
                            nvlink4 = {"NVLink 4", 450e9}, nvlink5 = {"NVLink 5", 900e9},
                            nvlink_cut = {"NVLink (reduced)", 200e9}, xgmi_mi250 = {"xGMI", 200e9},
                            xgmi_mi300 = {"xGMI", 448e9}, xgmi_mi350 = {"xGMI", 537.6e9},
                            pcie3 = {"PCIe 3", 16e9}, pcie4 = {"PCIe 4", 32e9},
                            pcie5 = {"PCIe 5", 64e9};

static const struct rp_link ib_edr = {"InfiniBand EDR, four cards for eight devices", 6.25e9},
                            ib_hdr = {"InfiniBand HDR or 200 Gb/s Ethernet", 25e9},
                            slingshot = {"Slingshot of 200 Gb/s for two dies", 12.5e9},
                            ib_ndr = {"InfiniBand NDR or 400 Gb/s Ethernet", 50e9},
                            ib_xdr = {"InfiniBand XDR or 800 Gb/s Ethernet", 100e9};

static const struct {
    const char *word;              /* of a device's name */
    const struct rp_link *link;    /* between modules */
    const struct rp_link *card;    /* if the name contains PCIe; NULL if it makes no difference */
    const struct rp_link *network; /* between nodes of such modules; NULL if not known */
} devices[] = {
    {"V100", &nvlink2, &pcie3, &ib_edr},
    {"A100", &nvlink3, &pcie4, &ib_hdr},
    {"A800", &nvlink_cut, &pcie4, &ib_hdr},
    {"H100", &nvlink4, &pcie5, &ib_ndr},
    {"H200", &nvlink4, &pcie5, &ib_ndr},
    {"GH200", &nvlink4, NULL, &ib_ndr},
    {"H20", &nvlink4, NULL, &ib_ndr},
    {"H800", &nvlink_cut, &pcie5, &ib_ndr},
    {"B200", &nvlink5, NULL, &ib_ndr},
    {"GB200", &nvlink5, NULL, &ib_ndr},
    {"B300", &nvlink5, NULL, &ib_xdr},
    {"GB300", &nvlink5, NULL, &ib_xdr},
    {"MI250", &xgmi_mi250, NULL, &slingshot},
    {"MI250X", &xgmi_mi250, NULL, &slingshot},
    {"MI300X", &xgmi_mi300, NULL, &ib_ndr},
    {"MI300A", &xgmi_mi300, NULL, NULL},
    {"MI325X", &xgmi_mi300, NULL, &ib_ndr},
    {"MI350X", &xgmi_mi350, NULL, &ib_ndr},
    {"MI355X", &xgmi_mi350, NULL, &ib_ndr},
    {"T4", &pcie3, NULL, NULL},
    {"A10", &pcie4, NULL, NULL},
    {"A40", &pcie4, NULL, NULL},
    {"L4", &pcie4, NULL, NULL},
    {"L40", &pcie4, NULL, NULL},
    {"L40S", &pcie4, NULL, NULL},
    {"4090", &pcie4, NULL, NULL},
    {"3090", &pcie4, NULL, NULL},
    {"5090", &pcie5, NULL, NULL},
};

/* Whether a text contains a word that is not part of a longer one. */
static bool has_word(const char *text, const char *word)
{
    size_t len = strlen(word);

    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        if ((at == text || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[len]))
            return true;
    return false;
}

static bool is_card(const char *device)
{
    return strstr(device, "PCIe") || strstr(device, "PCIE");
}

/* Returns the place of a device in the table, or SIZE_MAX. */
static size_t place_of(const char *device)
{
    for (size_t i = 0; device && i < sizeof devices / sizeof devices[0]; i++)
        if (has_word(device, devices[i].word))
            return i;
    return SIZE_MAX;
}

const struct rp_link *rp_link_of_device(const char *device)
{
    size_t i = place_of(device);

    if (i == SIZE_MAX)
        return NULL;
    return is_card(device) && devices[i].card ? devices[i].card : devices[i].link;
}

const struct rp_link *rp_link_between_nodes(const char *device)
{
    size_t i = place_of(device);

    return i == SIZE_MAX || is_card(device) ? NULL : devices[i].network;
}
