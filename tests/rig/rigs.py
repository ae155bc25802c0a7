# SPDX-License-Identifier: GPL-3.0-or-later
"""Well-known rigs written from their makers' documentation: hierarchy, helper bones and truth.

``name = role`` marks a joint with a role; a ``*`` behind a left bone adds the right one with all below it.
"""

from __future__ import annotations

FINGER_WORDS = ("Thumb", "Index", "Middle", "Ring", "Little")


def fingers(indent: int, *levels: str) -> str:
    """Lines for five fingers: one text a level from the hand outwards, thumb to little finger apart by ``|``.

    ``!`` marks a joint without role.
    """
    lines = []
    for finger, names in zip(FINGER_WORDS, zip(*[level.split("|") for level in levels], strict=True), strict=True):
        for depth, name in enumerate(names):
            role = "" if name.startswith("!") else f" = left{finger}"
            lines.append(" " * (indent + depth) + name.removeprefix("!") + role)
    return "\n".join(lines)


UNREAL_5 = f"""
root = root
 pelvis = hips
  spine_01 = spine
   spine_02 = spine
    spine_03 = spine
     spine_04 = spine
      spine_05 = spine
       neck_01 = neck
        neck_02 = neck
         head = head
       clavicle_l* = leftShoulder
        upperarm_l = leftUpperArm
         lowerarm_l = leftLowerArm
          hand_l = leftHand
           wrist_inner_l
{
    fingers(
        11,
        "thumb_01_l|!index_metacarpal_l|!middle_metacarpal_l|!ring_metacarpal_l|!pinky_metacarpal_l",
        "thumb_02_l|index_01_l|middle_01_l|ring_01_l|pinky_01_l",
        "thumb_03_l|index_02_l|middle_02_l|ring_02_l|pinky_02_l",
    )
}
          lowerarm_twist_01_l
          lowerarm_twist_02_l
         upperarm_twist_01_l
         upperarm_correctiveRoot_l
  thigh_l* = leftUpperLeg
   calf_l = leftLowerLeg
    foot_l = leftFoot
     ball_l = leftToes
    calf_twist_01_l
   thigh_twist_01_l
 ik_foot_root
  ik_foot_l*
 ik_hand_root
  ik_hand_gun
   ik_hand_l*
 interaction
 center_of_mass
"""

BIPED = f"""
Bip001 = root
 Bip001 Footsteps
 Bip001 Pelvis = hips
  Bip001 Spine = spine
   Bip001 L Thigh* = leftUpperLeg
    Bip001 L Calf = leftLowerLeg
     Bip001 L Foot = leftFoot
      Bip001 L Toe0 = leftToes
       Bip001 L Toe0Nub
   Bip001 Spine1 = spine
    Bip001 Spine2 = spine
     Bip001 Neck = neck
      Bip001 Head = head
       Bip001 HeadNub
       Bip001 Ponytail1
      Bip001 L Clavicle* = leftShoulder
       Bip001 L UpperArm = leftUpperArm
        Bip001 L Forearm = leftLowerArm
         Bip001 L Hand = leftHand
{
    fingers(
        10,
        "Bip001 L Finger0|Bip001 L Finger1|Bip001 L Finger2|Bip001 L Finger3|Bip001 L Finger4",
        "Bip001 L Finger01|Bip001 L Finger11|Bip001 L Finger21|Bip001 L Finger31|Bip001 L Finger41",
        "Bip001 L Finger02|Bip001 L Finger12|Bip001 L Finger22|Bip001 L Finger32|Bip001 L Finger42",
        "!Bip001 L Finger0Nub|!Bip001 L Finger1Nub|!Bip001 L Finger2Nub|!Bip001 L Finger3Nub|!Bip001 L Finger4Nub",
    )
}
"""

DAZ_8 = f"""
Genesis8Female = root
 hip = hips
  pelvis
   lThighBend* = leftUpperLeg
    lThighTwist
     lShin = leftLowerLeg
      lFoot = leftFoot
       lMetatarsals
        lToe = leftToes
         lBigToe
         lSmallToe1
  abdomenLower = spine
   abdomenUpper = spine
    chestLower = spine
     lPectoral*
     chestUpper = spine
      lCollar* = leftShoulder
       lShldrBend = leftUpperArm
        lShldrTwist
         lForearmBend = leftLowerArm
          lForearmTwist
           lHand = leftHand
{
    fingers(
        12,
        "lThumb1|!lCarpal1|!lCarpal2|!lCarpal3|!lCarpal4",
        "lThumb2|lIndex1|lMid1|lRing1|lPinky1",
        "lThumb3|lIndex2|lMid2|lRing2|lPinky2",
    )
}
      neckLower = neck
       neckUpper = neck
        head = head
         lEye* = leftEye
         lowerJaw = jaw
          tongue01
         upperFaceRig
          lBrowInner*
"""

DAZ_9 = f"""
Genesis9 = root
 hip = hips
  pelvis
   l_thigh* = leftUpperLeg
    l_thightwist1
    l_thightwist2
    l_shin = leftLowerLeg
     l_foot = leftFoot
      l_metatarsals
       l_toes = leftToes
        l_bigtoe1
  spine1 = spine
   spine2 = spine
    spine3 = spine
     l_pectoral*
     spine4 = spine
      l_shoulder* = leftShoulder
       l_upperarm = leftUpperArm
        l_upperarmtwist1
        l_forearm = leftLowerArm
         l_forearmtwist1
         l_hand = leftHand
{
    fingers(
        10,
        "l_thumb1|!l_indexmetacarpal|!l_midmetacarpal|!l_ringmetacarpal|!l_pinkymetacarpal",
        "l_thumb2|l_index1|l_mid1|l_ring1|l_pinky1",
        "l_thumb3|l_index2|l_mid2|l_ring2|l_pinky2",
    )
}
      neck1 = neck
       neck2 = neck
        head = head
         l_eye* = leftEye
         lowerjaw = jaw
"""

CHARACTER_CREATOR = f"""
CC_Base_BoneRoot = root
 CC_Base_Hip = hips
  CC_Base_Pelvis
   CC_Base_L_Thigh* = leftUpperLeg
    CC_Base_L_Calf = leftLowerLeg
     CC_Base_L_Foot = leftFoot
      CC_Base_L_ToeBase = leftToes
       CC_Base_L_BigToe1
       CC_Base_L_IndexToe1
      CC_Base_L_ToeBaseShareBone
     CC_Base_L_CalfTwist01
     CC_Base_L_KneeShareBone
    CC_Base_L_ThighTwist01
  CC_Base_Waist = spine
   CC_Base_Spine01 = spine
    CC_Base_Spine02 = spine
     CC_Base_L_Breast*
     CC_Base_L_RibsTwist*
     CC_Base_L_Clavicle* = leftShoulder
      CC_Base_L_Upperarm = leftUpperArm
       CC_Base_L_UpperarmTwist01
       CC_Base_L_Forearm = leftLowerArm
        CC_Base_L_ElbowShareBone
        CC_Base_L_ForearmTwist01
        CC_Base_L_Hand = leftHand
{
    fingers(
        9,
        "CC_Base_L_Thumb1|CC_Base_L_Index1|CC_Base_L_Mid1|CC_Base_L_Ring1|CC_Base_L_Pinky1",
        "CC_Base_L_Thumb2|CC_Base_L_Index2|CC_Base_L_Mid2|CC_Base_L_Ring2|CC_Base_L_Pinky2",
    )
}
     CC_Base_NeckTwist01 = neck
      CC_Base_NeckTwist02 = neck
       CC_Base_Head = head
        CC_Base_FacialBone
         CC_Base_JawRoot = jaw
          CC_Base_Tongue01
         CC_Base_L_Eye* = leftEye
         CC_Base_UpperJaw
          CC_Base_Teeth01
"""

VROID = f"""
Root = root
 J_Bip_C_Hips = hips
  J_Bip_C_Spine = spine
   J_Bip_C_Chest = spine
    J_Bip_C_UpperChest = spine
     J_Sec_L_Bust1*
     J_Bip_C_Neck = neck
      J_Bip_C_Head = head
       J_Adj_L_FaceEye* = leftEye
       J_Sec_Hair1_01
        J_Sec_Hair2_01
     J_Bip_L_Shoulder* = leftShoulder
      J_Bip_L_UpperArm = leftUpperArm
       J_Sec_L_TopsUpperArm
       J_Bip_L_LowerArm = leftLowerArm
        J_Bip_L_Hand = leftHand
{
    fingers(
        9,
        "J_Bip_L_Thumb1|J_Bip_L_Index1|J_Bip_L_Middle1|J_Bip_L_Ring1|J_Bip_L_Little1",
        "J_Bip_L_Thumb2|J_Bip_L_Index2|J_Bip_L_Middle2|J_Bip_L_Ring2|J_Bip_L_Little2",
        "J_Bip_L_Thumb3|J_Bip_L_Index3|J_Bip_L_Middle3|J_Bip_L_Ring3|J_Bip_L_Little3",
    )
}
  J_Sec_L_SkirtBack0_01*
  J_Bip_L_UpperLeg* = leftUpperLeg
   J_Bip_L_LowerLeg = leftLowerLeg
    J_Bip_L_Foot = leftFoot
     J_Bip_L_ToeBase = leftToes
"""

MMD = f"""
全ての親 = root
 センター
  グルーブ
   腰 = hips
    下半身
     左足* = leftUpperLeg
      左ひざ = leftLowerLeg
       左足首 = leftFoot
        左つま先 = leftToes
     左足D*
      左ひざD
       左足首D
        左足先EX
    上半身 = spine
     上半身2 = spine
      首 = neck
       頭 = head
        両目
        左目* = leftEye
      左肩P*
       左肩 = leftShoulder
        左肩C
         左腕 = leftUpperArm
          左腕捩
           左ひじ = leftLowerArm
            左手捩
             左手首 = leftHand
{
    fingers(
        14,
        "左親指０|左人指１|左中指１|左薬指１|左小指１",
        "左親指１|左人指２|左中指２|左薬指２|左小指２",
        "左親指２|左人指３|左中指３|左薬指３|左小指３",
    )
}
 左足IK親*
  左足ＩＫ
   左つま先ＩＫ
"""

MMD_ENGLISH = f"""
mother = root
 center = hips
  lower body
   leg_L* = leftUpperLeg
    knee_L = leftLowerLeg
     ankle_L = leftFoot
      toe_L = leftToes
  upper body = spine
   upper body2 = spine
    neck = neck
     head = head
      eye_L* = leftEye
    shoulder_L* = leftShoulder
     arm_L = leftUpperArm
      arm twist_L
       elbow_L = leftLowerArm
        wrist twist_L
         wrist_L = leftHand
{fingers(10, "thumb1_L|fore1_L|middle1_L|third1_L|little1_L", "thumb2_L|fore2_L|middle2_L|third2_L|little2_L")}
 leg IK_L*
  toe IK_L
"""

SMPL = """
m_avg_root = root
 m_avg_Pelvis = hips
  m_avg_L_Hip* = leftUpperLeg
   m_avg_L_Knee = leftLowerLeg
    m_avg_L_Ankle = leftFoot
     m_avg_L_Foot = leftToes
  m_avg_Spine1 = spine
   m_avg_Spine2 = spine
    m_avg_Spine3 = spine
     m_avg_Neck = neck
      m_avg_Head = head
     m_avg_L_Collar* = leftShoulder
      m_avg_L_Shoulder = leftUpperArm
       m_avg_L_Elbow = leftLowerArm
        m_avg_L_Wrist = leftHand
         m_avg_L_Hand
"""

AUTO_RIG_PRO = f"""
root.x = hips
 thigh_stretch.l* = leftUpperLeg
  thigh_twist.l
  leg_stretch.l = leftLowerLeg
   leg_twist.l
   foot.l = leftFoot
    toes_01.l = leftToes
 spine_01.x = spine
  spine_02.x = spine
   spine_03.x = spine
    neck.x = neck
     head.x = head
      jawbone.x = jaw
    shoulder.l* = leftShoulder
     arm_stretch.l = leftUpperArm
      arm_twist.l
      forearm_stretch.l = leftLowerArm
       forearm_twist.l
       hand.l = leftHand
{
    fingers(
        8,
        "thumb1.l|!index1_base.l|!middle1_base.l|!ring1_base.l|!pinky1_base.l",
        "c_thumb2.l|index1.l|middle1.l|ring1.l|pinky1.l",
        "c_thumb3.l|c_index2.l|c_middle2.l|c_ring2.l|c_pinky2.l",
    )
}
"""

UNITY = """
Hips = hips
 LeftUpperLeg* = leftUpperLeg
  LeftLowerLeg = leftLowerLeg
   LeftFoot = leftFoot
    LeftToes = leftToes
 Spine = spine
  Chest = spine
   UpperChest = spine
    Neck = neck
     Head = head
      LeftEye* = leftEye
      Jaw = jaw
    LeftShoulder* = leftShoulder
     LeftUpperArm = leftUpperArm
      LeftLowerArm = leftLowerArm
       LeftHand = leftHand
        Left Thumb Proximal = leftThumb
         Left Thumb Intermediate = leftThumb
          Left Thumb Distal = leftThumb
        Left Index Proximal = leftIndex
         Left Index Intermediate = leftIndex
          Left Index Distal = leftIndex
"""

ROKOKO = """
Root = root
 Hips = hips
  Spine1 = spine
   Spine2 = spine
    Spine3 = spine
     Spine4 = spine
      Neck = neck
       Head = head
      LeftShoulder* = leftShoulder
       LeftArm = leftUpperArm
        LeftForeArm = leftLowerArm
         LeftHand = leftHand
          LeftFinger1Metacarpal = leftThumb
           LeftFinger1Proximal = leftThumb
            LeftFinger1Distal = leftThumb
             LeftFinger1Tip
          LeftFinger2Metacarpal
           LeftFinger2Proximal = leftIndex
            LeftFinger2Medial = leftIndex
             LeftFinger2Distal = leftIndex
              LeftFinger2Tip
  LeftThigh* = leftUpperLeg
   LeftShin = leftLowerLeg
    LeftFoot = leftFoot
     LeftToe = leftToes
      LeftToeEnd
"""

OPTITRACK = """
Hip = hips
 Ab = spine
  Chest = spine
   Neck = neck
    Head = head
   LShoulder* = leftShoulder
    LUArm = leftUpperArm
     LFArm = leftLowerArm
      LHand = leftHand
 LThigh* = leftUpperLeg
  LShin = leftLowerLeg
   LFoot = leftFoot
    LToe = leftToes
"""

LAFAN1 = """
Hips = hips
 LeftUpLeg* = leftUpperLeg
  LeftLeg = leftLowerLeg
   LeftFoot = leftFoot
    LeftToe = leftToes
 Spine = spine
  Spine1 = spine
   Spine2 = spine
    Neck = neck
     Head = head
    LeftShoulder* = leftShoulder
     LeftArm = leftUpperArm
      LeftForeArm = leftLowerArm
       LeftHand = leftHand
"""

HUMANIK = """
Reference = root
 Hips = hips
  LeftUpLeg* = leftUpperLeg
   LeftUpLegRoll
   LeftLeg = leftLowerLeg
    LeftLegRoll
    LeftFoot = leftFoot
     LeftToeBase = leftToes
  Spine = spine
   Spine1 = spine
    Spine2 = spine
     Spine3 = spine
      Spine4 = spine
       Neck = neck
        Neck1 = neck
         Head = head
       LeftShoulder* = leftShoulder
        LeftShoulderExtra
         LeftArm = leftUpperArm
          LeftArmRoll
          LeftForeArm = leftLowerArm
           LeftForeArmRoll
           LeftHand = leftHand
            LeftInHandIndex
             LeftHandIndex1 = leftIndex
              LeftHandIndex2 = leftIndex
               LeftHandIndex3 = leftIndex
                LeftHandIndex4
"""

RIGIFY_METARIG = """
spine = hips
 spine.001 = spine
  spine.002 = spine
   spine.003 = spine
    spine.004 = neck
     spine.005 = neck
      spine.006 = head
       face
        nose
        jaw = jaw
        eye.L* = leftEye
        ear.L*
    shoulder.L* = leftShoulder
     upper_arm.L = leftUpperArm
      forearm.L = leftLowerArm
       hand.L = leftHand
        palm.01.L
         f_index.01.L = leftIndex
          f_index.02.L = leftIndex
           f_index.03.L = leftIndex
         thumb.01.L = leftThumb
          thumb.02.L = leftThumb
           thumb.03.L = leftThumb
        palm.02.L
         f_middle.01.L = leftMiddle
          f_middle.02.L = leftMiddle
           f_middle.03.L = leftMiddle
    breast.L*
 pelvis.L*
 thigh.L* = leftUpperLeg
  shin.L = leftLowerLeg
   foot.L = leftFoot
    toe.L = leftToes
    heel.02.L
"""

# As Rigify generates it: deform bones hang on the ORG- bones that drive them, controls stand between.
RIGIFY_GENERATED = """
root = root
 MCH-torso.parent
  torso
   hips
   chest
 DEF-spine = hips
  DEF-spine.001 = spine
   DEF-spine.002 = spine
    DEF-spine.003 = spine
     DEF-spine.004 = neck
      DEF-spine.005 = neck
       DEF-spine.006 = head
 ORG-spine
  ORG-pelvis.L*
   DEF-pelvis.L
  thigh_parent.L*
   MCH-thigh_parent.L
    thigh_fk.L
     shin_fk.L
      MCH-foot_fk.L
       foot_fk.L
  DEF-thigh.L* = leftUpperLeg
   DEF-thigh.L.001
    DEF-shin.L = leftLowerLeg
     DEF-shin.L.001
      DEF-foot.L = leftFoot
       DEF-toe.L = leftToes
  ORG-thigh.L*
   ORG-shin.L
    ORG-foot.L
     ORG-toe.L
  ORG-spine.001
   ORG-spine.002
    ORG-spine.003
     shoulder.L*
     ORG-shoulder.L*
      DEF-shoulder.L = leftShoulder
      DEF-upper_arm.L = leftUpperArm
       DEF-upper_arm.L.001
        DEF-forearm.L = leftLowerArm
         DEF-forearm.L.001
          DEF-hand.L = leftHand
      upper_arm_parent.L
       upper_arm_fk.L
        forearm_fk.L
         hand_fk.L
      ORG-upper_arm.L
       ORG-forearm.L
        ORG-hand.L
         ORG-palm.01.L
          ORG-f_index.01.L
           DEF-f_index.01.L = leftIndex
            DEF-f_index.02.L = leftIndex
             DEF-f_index.03.L = leftIndex
 MCH-hand_ik.parent.L*
  hand_ik.L
 MCH-foot_ik.parent.L*
  foot_ik.L
"""

RIGS: dict[str, tuple[str, str]] = {
    "unreal_5": ("Unreal mannequin", UNREAL_5),
    "biped": ("3ds Max Biped", BIPED),
    "daz_8": ("Daz Genesis 3 and 8", DAZ_8),
    "daz_9": ("Daz Genesis 9", DAZ_9),
    "character_creator": ("Character Creator", CHARACTER_CREATOR),
    "vroid": ("VRoid", VROID),
    "mmd": ("MikuMikuDance (Japanese)", MMD),
    "mmd_english": ("MikuMikuDance (English)", MMD_ENGLISH),
    "smpl": ("SMPL", SMPL),
    "auto_rig_pro": ("Auto-Rig Pro", AUTO_RIG_PRO),
    "unity": ("Unity humanoid", UNITY),
    "rokoko": ("Rokoko", ROKOKO),
    "optitrack": ("OptiTrack Motive", OPTITRACK),
    "lafan1": ("LaFAN1", LAFAN1),
    "humanik": ("HumanIK", HUMANIK),
    "rigify_metarig": ("Rigify metarig", RIGIFY_METARIG),
    "rigify_generated": ("Rigify deform bones", RIGIFY_GENERATED),
}
"""Name -> (family, rig)."""
