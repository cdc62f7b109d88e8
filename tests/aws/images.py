# SPDX-License-Identifier: Apache-2.0
"""The images of the stand-in's account (account.py): made by builds that end after some looks at them, in versions. Requests have been
checked against the models when they come here."""
import time

from cloudwatch import CloudWatch
from model import Bad

ACCOUNT, REGION = "123456789012", "eu-west-1"
MANAGED = f"arn:aws:lambda:{REGION}:aws:microvm-image:al2023-1"
MEMORY = [512, 1024, 2048, 4096, 8192]
REASON = "The container image build failed."


class Images(CloudWatch):
    def image(self, v):
        i = self.images.get(v["imageIdentifier"])
        if not i:
            raise Bad(404, "ResourceNotFoundException", f"MicroVM Image not found: {v['imageIdentifier']}")
        return i

    def build(self, i, v):
        self.take_role(v["buildRoleArn"])
        bucket, _, key = v["codeArtifact"]["uri"][5:].partition("/")
        if key not in self.buckets.get(bucket, {"objects": {}})["objects"]:
            raise Bad(400, "ValidationException", "S3_NO_SUCH_KEY")
        memory = v.get("resources", [{"minimumMemoryInMiB": 2048}])
        if memory[0]["minimumMemoryInMiB"] not in MEMORY:
            raise Bad(400, "ValidationException", f"The requested memory size of {memory[0]['minimumMemoryInMiB']} MiB is not supported by base MicroVM "
                      f"image {v['baseImageArn']}. Supported memory sizes in MiB are: {MEMORY}.")
        i.update(waits=2 * self.slow, built=i["built"] + 1, code=key, base=v["baseImageArn"])
        now = round(time.time(), 3)
        spec = {k: x for k, x in v.items() if k not in ("clientToken", "imageIdentifier", "name", "tags")}
        i.setdefault("versions", {})[f"{i['built']}.0"] = {
            **spec, "resources": memory, "baseImageVersion": "1.0", "imageArn": i["arn"], "imageVersion": f"{i['built']}.0", "state": "IN_PROGRESS",
            "status": "ACTIVE", "stateReason": None, "createdAt": now, "updatedAt": now, "tags": None, "versionStateTimeBucket": "IN_PROGRESS#26113004"}
        i["fails"] = self.build_fails

    def CreateMicrovmImage(self, v):
        arn = f"arn:aws:lambda:{REGION}:{ACCOUNT}:microvm-image:{v['name']}"
        if arn in self.images:
            raise Bad(400, "ValidationException", f"A MicroVM image with the name '{v['name']}' already exists in this account")
        i = {"arn": arn, "state": "CREATING", "built": 0, "tags": v.get("tags", {})}
        self.build(i, v)
        self.images[arn] = i
        return self.image_doc(i, True)

    def UpdateMicrovmImage(self, v):
        i = self.image(v)
        if i["state"] not in ("CREATED", "CREATE_FAILED", "UPDATED", "UPDATE_FAILED"):
            raise Bad(409, "ConflictException", f"MicroVM Image is already in state: {i['state']}")
        self.build(i, v)
        i["state"] = "UPDATING"
        return self.image_doc(i, True)

    @staticmethod
    def image_doc(i, new=False):
        """As the service shows it; NEW: in the answer to what has started a build."""
        versions = i.get("versions", {}).values()
        active = [x["imageVersion"] for x in versions if x["state"] == "SUCCESSFUL" and x["status"] == "ACTIVE"]
        failed = [x["imageVersion"] for x in versions if x["state"] == "FAILED"]
        doc = {"imageArn": i["arn"], "name": i["arn"].split(":")[-1], "state": i["state"], "createdAt": 1795000000.0, "id": "6c0b",
               "latestActiveImageVersion": active[-1] if active else None, "latestFailedImageVersion": failed[-1] if failed else None,
               "updatedAt": 1795000000.0, "tags": i["tags"]}
        if new:
            doc.update({k: x for k, x in i["versions"][f"{i['built']}.0"].items() if k not in ("state", "status", "stateReason", "tags")})
        return doc

    def look(self, i):
        """One look nearer to the end of what is being done with it."""
        if not self.together <= {arn.split(":")[-1] for arn in self.images}:
            return
        i["waits"] = i.get("waits", 0) - 1
        if i["waits"] >= 0 or not i["state"].endswith("ING"):
            return
        if i["state"] == "DELETING":
            del self.images[i["arn"]]
            return
        last = i.get("versions", {}).get(f"{i['built']}.0")
        if last and last["state"] == "IN_PROGRESS":
            last.update(state="FAILED" if i["fails"] else "SUCCESSFUL", updatedAt=round(time.time(), 3))
            i["failed"] = i["fails"]
        i["state"] = i["state"][:-3] + ("E_FAILED" if i.get("failed") else "ED")

    def GetMicrovmImage(self, v):
        self.look(self.image(v))
        return self.image_doc(self.image(v))

    def ListMicrovmImages(self, v):
        found = [self.image_doc(i) for i in self.images.values() if v.get("nameFilter", "") in i["arn"].split(":")[-1]]
        return self.two_of([{k: x for k, x in d.items() if k not in ("tags", "updatedAt")} for d in found], v)

    def two_of(self, items, v):
        """Two on a page; the first page is empty."""
        at = int(v["nextToken"].rstrip("=")) if "nextToken" in v else -2
        more = at + 2 < len(items)
        return {"items": items[max(at, 0):max(at + 2, 0)], "nextToken": f"{at + 2}==" if more else None}

    def DeleteMicrovmImage(self, v):
        i = self.image(v)
        if any(x["image"] == i["arn"] and x["state"] != "TERMINATED" for x in self.vms.values()):
            raise Bad(400, "ValidationException", "Cannot delete microvm image with running microvms.")
        if i["state"].endswith("ING"):
            self.look(i)
            raise Bad(400, "ValidationException", f"Cannot delete MicroVM image in its current state: {i['arn']}")
        i.update(state="DELETING", waits=self.slow)
        return {"imageIdentifier": i["arn"], "state": "DELETING"}

    # --- versions and builds

    def version(self, v):
        x = self.image(v).get("versions", {}).get(v["imageVersion"])
        if not x:
            raise Bad(404, "ResourceNotFoundException", f"MicroVM image version not found: {v['imageVersion']}")
        return x

    def GetMicrovmImageVersion(self, v):
        self.look(self.image(v))
        return self.version(v)

    def ListMicrovmImageVersions(self, v):
        return self.two_of(list(self.image(v).get("versions", {}).values()), v)

    def DeleteMicrovmImageVersion(self, v):
        i, x = self.image(v), self.version(v)
        if i["state"].endswith("ING"):
            self.look(i)
            raise Bad(409, "ConflictException", f"MicroVM Image is already in state: {i['state']}")
        if len(i["versions"]) == 1:
            raise Bad(400, "ValidationException", "This is the last version. Please delete the entire image")
        live = [m for m in self.vms.values() if m["image"] == i["arn"] and m["state"] != "TERMINATED" and m.get("version") == x["imageVersion"]]
        if live:
            for m in live:
                m["state"] = m["state"].replace("TERMINATING", "TERMINATED")  # it has ended when it is asked again
            raise Bad(400, "ValidationException", "Cannot delete microvm image version with running microvms.")
        del i["versions"][v["imageVersion"]]
        i.update(state="UPDATING", waits=self.slow, failed=False)
        return {"imageIdentifier": i["arn"], "imageVersion": v["imageVersion"], "state": "DELETING"}

    def ListMicrovmImageBuilds(self, v):
        x = self.version(v)
        state = x["state"]
        return {"items": [{"architecture": "ARM_64", "buildId": f"b{n}", "buildState": state, "chipset": "GRAVITON", "chipsetGeneration": n,
                           "createdAt": x["createdAt"], "imageArn": x["imageArn"], "imageVersion": x["imageVersion"],
                           "stateReason": REASON if state == "FAILED" else None, "terminationReasonCode": None} for n in ("4", "3")], "nextToken": None}

    @staticmethod
    def ListManagedMicrovmImages(_):
        return {"items": [{"imageArn": MANAGED + "x", "createdAt": 1.0, "updatedAt": 1.0},
                          {"imageArn": MANAGED, "createdAt": 2.0, "updatedAt": 2.0}], "nextToken": None}

    @staticmethod
    def ListManagedMicrovmImageVersions(v):
        if not v["imageIdentifier"].startswith(MANAGED):
            raise Bad(404, "ResourceNotFoundException", "no such managed image")
        return {"items": [{"imageArn": v["imageIdentifier"], "imageVersion": x, "createdAt": 1.0, "updatedAt": 1.0, "status": "AVAILABLE"}
                          for x in ("1", "0")], "nextToken": None}
