/* The GPUs of "gres:gpu:2,gres:gpu:a100:4": 6. A name without a number is one; NULL is none. */
static inline double policy_gpus(const char *text)
{
    double total = 0.0;

    while (text && *text) {
        const char *part = text, *end = text + strcspn(text, ",");

        if (!strncmp(part, "gres:", 5) || !strncmp(part, "gres/", 5))
            part += 5;
        if (!strncmp(part, "gpu", 3) && ((part + 3 == end) || (part[3] == ':') || (part[3] == '='))) {
            const char *digits = end;
            double count = 0.0, unit = 1.0;

            for (part += 3; (digits > part) && (digits[-1] >= '0') && (digits[-1] <= '9'); unit *= 10.0)
                count += unit * (*--digits - '0');
            total += ((digits < end) && ((digits[-1] == ':') || (digits[-1] == '='))) ? count : 1.0;
        }
        text = *end ? end + 1 : end;
    }
    return total;
}

