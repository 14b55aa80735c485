/* Preloaded into the project runner alone: makes its process non-dumpable before node's first instruction,
 * so that the kernel refuses its memory and descriptors to every other process of the same uid. A runner
 * that could not be closed must not read a plan: then the process ends here. */

#include <sys/prctl.h>
#include <unistd.h>

static const char refusal[] = "plimsoll-runner-guard: the process could not be made non-dumpable\n";

__attribute__((constructor)) static void close_process(void)
{
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 && prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0)
        return;
    ssize_t ignored = write(STDERR_FILENO, refusal, sizeof refusal - 1);
    (void)ignored;
    _exit(125);
}
