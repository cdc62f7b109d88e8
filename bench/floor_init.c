/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floor of a boot: a PID 1 that says on the console that it runs, and ends the VM. Nothing that a guest needs
 * is done here, so the time until its line is the kernel's own share.
 */
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <unistd.h>

int main(void)
{
	static const char line[] = "FLOOR\n";
	int fd;

	(void)mount("dev", "/dev", "devtmpfs", 0, NULL);
	fd = open("/dev/console", O_WRONLY);
	if (fd >= 0 && write(fd, line, sizeof(line) - 1) < 0)
		return 1;
	(void)reboot(RB_AUTOBOOT);
	return 0;
}
