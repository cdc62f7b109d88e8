/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest command: what is measured with it is the cost of starting something. */
int main(void)
{
	return 0;
}
